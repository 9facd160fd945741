// Where trials lie among the cells of a contour, and which cells there are. Pure functions.
import type { GridAxis, PartialDependence } from "./api/analysis.js";
import type { Column } from "./api/columns.js";
import type { SpaceRules, ValueRule } from "./api/records.js";

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

// Whether a trial may have these values, as the rules of spec.shirabe.space have it: whether all
// of them can exist together, and what those exist by, and nothing forbids just them.
export function mayBe(pin: Pin, rules: SpaceRules): boolean {
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
  return !forbidden && [...needed].every(([name, tests]) => (pin.has(name)
    ? tests.every((test) => passes(pin.get(name)!, test)) : together(tests)));
}

// The model knows a value everywhere. Where no trial can lie it says nothing here: NaN.
export function possible(model: PartialDependence, rules: SpaceRules): PartialDependence {
  const [x, y] = model.axes;
  if (!x || !y) return model;
  const there = x.values.flatMap((one) => y.values.map((other) =>
    mayBe(new Map([[x.parameter, one], [y.parameter, other]]), rules)));
  const only = (values: number[]) => values.map((value, at) => (there[at] ? value : NaN));
  return { ...model, mean: only(model.mean), low: only(model.low), high: only(model.high) };
}
