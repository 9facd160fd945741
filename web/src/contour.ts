// Where trials lie among the cells of a contour, and which cells there are. Pure functions.
import type { GridAxis, PartialDependence } from "./api/analysis.js";
import type { Column } from "./api/columns.js";
import type { LinearConstraint, Parameter, SpaceRules, ValueRule } from "./api/records.js";

// Where values of a parameter lie, in cells: the model's own values are in the middle of theirs,
// and others between them. Categories have one place each; they stand side by side within their
// cell, the same way each time. NaN = not on this axis.
export function placing(axis: GridAxis, column: Column, log: boolean): (row: number) => number {
  const { values } = axis;
  if (column.kind === "category") {
    const cells = column.dictionary.map((word) => values.indexOf(word));
    return (row) => {
      const cell = cells[column.values[row]!] ?? -1;
      return cell < 0 ? NaN : cell + 0.5 + (((row * 7919) % 21) - 10) / 33;
    };
  }
  const scaled = (value: number) => (log && value > 0 ? Math.log(value) : value);
  const grid = values.map((text) => scaled(Number(text)));
  const last = grid.length - 1;
  return (row) => {
    const value = column.values[row]!;
    if (!Number.isFinite(value)) return NaN;
    if (last === 0) return 0.5;
    const at = scaled(value);
    let i = 0;
    while (i < last - 1 && grid[i + 1]! <= at) ++i;
    const place = i + 0.5 + (at - grid[i]!) / (grid[i + 1]! - grid[i]!);
    return Math.max(0, Math.min(grid.length, place));
  };
}

export interface Pair {
  x: string;
  y: string; // "" if there are no two
  xs: string[]; // what either may be changed to
  ys: string[];
}

// The two that are asked for, if there is a picture of them, else the first two that have one.
export function pairOf(
  names: string[], [x, y]: [string, string], has: (x: string, y: string) => boolean,
): Pair {
  const fits = (one: string) => (other: string) => other !== one && has(one, other);
  const xs = names.filter((one) => names.some(fits(one)));
  if (xs.length === 0 && names.length > 1) return pairOf(names, [x, y], () => true);
  const across = xs.includes(x) ? x : (xs[0] ?? "");
  const ys = across === "" ? [] : names.filter(fits(across));
  return { x: across, y: ys.includes(y) ? y : (ys[0] ?? ""), xs, ys };
}

// ---- cells that no trial can lie in ------------------------------------------------------------

type Pin = Map<string, string>; // parameters with their values
type Test = { in: string[] } | { min?: number; max?: number };

function testOf(rule: ValueRule): Test {
  if (typeof rule !== "object") return { in: [String(rule)] };
  if (Array.isArray(rule)) return { in: rule.map(String) };
  return "in" in rule ? { in: rule.in.map(String) } : rule;
}

function passes(value: string, test: Test): boolean {
  if ("in" in test) {
    return test.in.some((one) => one === value || (one !== "" && Number(one) === Number(value)));
  }
  return Number(value) >= (test.min ?? -Infinity) && Number(value) <= (test.max ?? Infinity);
}

// Is there a value that passes all of them?
function together(tests: Test[]): boolean {
  const list = tests.find((one): one is { in: string[] } => "in" in one);
  if (list) return list.in.some((value) => tests.every((test) => passes(value, test)));
  const ranges = tests as { min?: number; max?: number }[];
  return Math.max(...ranges.map((one) => one.min ?? -Infinity)) <=
    Math.min(...ranges.map((one) => one.max ?? Infinity));
}

// As the server rounds it: 0.1 + 0.2 keeps a maximum of 0.3.
const ROUNDING = 1e-9;

function rangeOf(name: string, parameters: Parameter[]): [low: number, high: number] {
  const space = parameters.find((one) => one.name === name)?.feasibleSpace;
  const list = (space?.list ?? []).map(Number);
  if (list.length > 0) return [Math.min(...list), Math.max(...list)];
  return [Number(space?.min ?? -Infinity), Number(space?.max ?? Infinity)];
}

// Whether the sum is within its bounds for some values of the parameters without one here.
function canKeep(rule: LinearConstraint, pin: Pin, parameters: Parameter[]): boolean {
  let [low, high, rounding] = [0, 0, 0];
  for (const [name, factor] of Object.entries(rule.sum)) {
    const value = pin.get(name);
    const range = value === undefined ? rangeOf(name, parameters) : [Number(value)];
    const terms = range.map((one) => Number(factor) * one);
    low += Math.min(...terms);
    high += Math.max(...terms);
    rounding += ROUNDING * Math.max(...terms.map(Math.abs));
  }
  return low <= (rule.max ?? Infinity) + rounding && high >= (rule.min ?? -Infinity) - rounding;
}

// Whether a trial may have these values, as the rules of spec.shirabe.space have it: whether all
// of them can exist together, and what those exist by, nothing forbids just them, and sums can be
// within their bounds.
export function mayBe(pin: Pin, rules: SpaceRules, parameters: Parameter[] = []): boolean {
  const needed = new Map<string, Test[]>();
  const names = new Set(pin.keys()); // grows by what they exist by
  for (const name of names) {
    const when = rules.conditions?.find((one) => one.parameter === name)?.when ?? {};
    for (const [other, rule] of Object.entries(when)) {
      names.add(other);
      needed.set(other, [...(needed.get(other) ?? []), testOf(rule)]);
    }
  }
  const forbidden = (rules.forbidden ?? []).some((one) => Object.entries(one).every(
    ([name, rule]) => pin.has(name) && passes(pin.get(name)!, testOf(rule))));
  // A sum of which a parameter does not exist has no bounds.
  const exists = (name: string) =>
    names.has(name) || !rules.conditions?.some((one) => one.parameter === name);
  const linear = (rules.linear ?? []).filter((one) => Object.keys(one.sum).every(exists));
  if (!linear.every((one) => canKeep(one, pin, parameters))) return false;
  return !forbidden && [...needed].every(([name, tests]) => (pin.has(name)
    ? tests.every((test) => passes(pin.get(name)!, test)) : together(tests)));
}

// The model knows a value everywhere. Where no trial can lie it says nothing here: NaN.
export function possible(
  model: PartialDependence, rules: SpaceRules, parameters: Parameter[] = [],
): PartialDependence {
  const [x, y] = model.axes;
  if (!x || !y) return model;
  const there = x.values.flatMap((one) => y.values.map((other) =>
    mayBe(new Map([[x.parameter, one], [y.parameter, other]]), rules, parameters)));
  const only = (values: number[]) => values.map((value, at) => (there[at] ? value : NaN));
  return { ...model, mean: only(model.mean), low: only(model.low), high: only(model.high) };
}
