// What was chosen along an axis: a range of numbers, some words, or the trials that have no value.
// What the language of the filter can say becomes terms of it, which the command line takes as they
// are. It has no escape for quotes, no "or", and no word for a number that is missing: such a
// choice stands beside the filter in the address, by its exact values, and both hold.
import type { Column } from "./api/columns.js";
import { parseFilter } from "./filter.js";
import { short, word } from "./format.js";

export interface Brush {
  column: string;
  low?: number; // both included
  high?: number;
  words?: string[];
  none?: true; // alone
}

const MOST_TERMS = 8;

export function printBrush(brush: Brush): string {
  return JSON.stringify(brush);
}

// Of the address; null if it is not one.
export function parseBrush(text: string): Brush | null {
  let value: Partial<Brush> | null;
  try {
    value = JSON.parse(text) as Partial<Brush> | null;
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null || typeof value.column !== "string") return null;
  const number = (n: unknown) => n === undefined || typeof n === "number";
  const words = value.words === undefined ||
    (Array.isArray(value.words) && value.words.every((one) => typeof one === "string"));
  return number(value.low) && number(value.high) && words ? (value as Brush) : null;
}

export function meets(brush: Brush, column: Column): (row: number) => boolean {
  const { values } = column;
  if (brush.none) return (row) => !Number.isFinite(values[row]!);
  if (column.kind === "category") {
    const codes = new Set((brush.words ?? []).map((word) => column.dictionary.indexOf(word)));
    return (row) => codes.has(values[row]!);
  }
  const [low, high] = [brush.low ?? -Infinity, brush.high ?? Infinity];
  return (row) => values[row]! >= low && values[row]! <= high && Number.isFinite(values[row]!);
}

// lr from 0.1 to 0.2; opt is a or b; depth: none
export function describe(brush: Brush): string {
  const name = brush.column.replace(/^(param|metric)\./, "");
  if (brush.none) return `${name}: none`;
  if (brush.words) return `${name} is ${brush.words.map(word).join(" or ")}`;
  const { low, high } = brush;
  if (low === undefined) return `${name} at most ${short(high)}`;
  return high === undefined ? `${name} at least ${short(low)}`
    : `${name} from ${short(low)} to ${short(high)}`;
}

// A term of the filter that is read as it is meant; undefined if there is none. Commas part terms
// unless they stand after an odd number of quotes, and a value may stand in a pair of them.
export function termOf(field: string, operator: string, value: string): string | undefined {
  const read = (term: string): boolean => {
    try {
      const [one, ...more] = parseFilter(term);
      return more.length === 0 && one?.field === field && one.operator === operator &&
        one.value === value;
    } catch {
      return false;
    }
  };
  return [`${field}${operator}${value}`, `${field}${operator}"${value}"`].find(read);
}

// Neither side takes account of case where it compares words.
function isAlone(word: string, words: string[]): boolean {
  return words.filter((one) => one.toLowerCase() === word.toLowerCase()).length === 1;
}

function wordTerms(brush: Brush, column: Column, rows: number): string[] | null {
  const { dictionary } = column;
  const wanted = new Set(brush.none ? [] : brush.words);
  const left = dictionary.filter((word) => !wanted.has(word));
  // What has no value differs from every word.
  const missing = column.values.subarray(0, rows).some(Number.isNaN);
  const terms = wanted.size === 1 ? [...wanted].map((word) => [word, "="])
    : left.length <= MOST_TERMS && (brush.none === true || !missing)
      ? left.map((word) => [word, "!="]) : [];
  if (terms.length === 0 || terms.some(([word]) => !isAlone(word!, dictionary))) return null;
  const texts = terms.map(([word, operator]) => termOf(column.name, operator!, word!));
  return texts.includes(undefined) ? null : (texts as string[]);
}

// The fewest digits, of three at least, that leave in what the exact bound leaves in.
function boundText(column: Column, rows: number, bound: number, low: boolean): string {
  let [outside, inside] = low ? [-Infinity, Infinity] : [Infinity, -Infinity];
  for (let row = 0; row < rows; ++row) {
    const value = column.values[row]!;
    if (Number.isNaN(value)) continue;
    const within = low ? value >= bound : value <= bound;
    if (within) inside = low ? Math.min(inside, value) : Math.max(inside, value);
    else outside = low ? Math.max(outside, value) : Math.min(outside, value);
  }
  for (let digits = 3; digits < 17; ++digits) {
    const rounded = Number(bound.toPrecision(digits));
    if (low ? rounded > outside && rounded <= inside : rounded < outside && rounded >= inside) {
      return String(rounded);
    }
  }
  return String(bound);
}

// The same as terms of the filter; null where its language cannot say exactly that.
export function termsOf(brush: Brush, column: Column, rows: number): string[] | null {
  if (column.kind === "category") return wordTerms(brush, column, rows);
  if (brush.none) return null;
  const bounds = [
    brush.low !== undefined && [">=", boundText(column, rows, brush.low, true)],
    brush.high !== undefined && ["<=", boundText(column, rows, brush.high, false)],
  ].filter((one): one is string[] => one !== false);
  const texts = bounds.map(([operator, text]) => termOf(column.name, operator!, text!));
  return texts.includes(undefined) ? null : (texts as string[]);
}
