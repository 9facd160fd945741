// An axis of a parameter or the objective: linear, logarithmic, by rank (quantiles), or of
// categories. Pure functions of columns.
import type { Column } from "./api/columns.js";
import type { Experiment } from "./api/records.js";
import type { TrialData } from "./api/trials.js";
import { distinct, short, word } from "./format.js";
import { maximizes } from "./state.js";

export type Scale = "linear" | "log" | "quantile";

export interface Axis {
  column: Column;
  name: string;
  scale: Scale | "category";
  low: number;
  high: number;
  sorted: Float64Array | null; // of a quantile axis: the values in order
}

export function nameOfColumn(column: string, experiment: Experiment): string {
  if (column === "objective") return experiment.spec.objective.objectiveMetricName;
  return column.replace(/^(param|metric)\./, "");
}

export function defaultScale(column: string, experiment: Experiment): Scale {
  const name = column.replace(/^param\./, "");
  const parameter = (experiment.spec.parameters ?? []).find((one) => one.name === name);
  const spread = parameter?.feasibleSpace.distribution ?? "";
  return column.startsWith("param.") && /^log/.test(spread) ? "log" : "linear";
}

export function makeAxis(
  column: Column, rows: ArrayLike<number>, scale: Scale, experiment: Experiment,
): Axis {
  const name = nameOfColumn(column.name, experiment);
  if (column.kind === "category") {
    const high = Math.max(1, column.dictionary.length - 1);
    return { column, name, scale: "category", low: 0, high, sorted: null };
  }
  let [low, high] = [Infinity, -Infinity];
  for (let i = 0; i < rows.length; ++i) {
    const value = column.values[rows[i]!]!;
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) [low, high] = [0, 1];
  const able = scale === "log" && low <= 0 ? "linear" : scale;
  if (low === high) {
    const margin = able === "log" ? low * 0.1 : Math.abs(low) * 0.1 || 1;
    [low, high] = [low - margin, high + margin];
  }
  const sorted = able === "quantile"
    ? Float64Array.from(
      Array.from(rows, (row) => column.values[row]!).filter(Number.isFinite),
    ).sort()
    : null;
  return { column, name, scale: able, low, high, sorted };
}

// How many of the sorted values are below, or also equal.
function rank(sorted: Float64Array, value: number, orEqual = false): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! < value || (orEqual && sorted[middle] === value)) low = middle + 1;
    else high = middle;
  }
  return low;
}

// 0 at the low end, 1 at the high one; NaN stays NaN.
export function positionOf(axis: Axis, value: number): number {
  if (!Number.isFinite(value)) return NaN;
  if (axis.scale === "log") {
    return value <= 0 ? NaN : Math.log(value / axis.low) / Math.log(axis.high / axis.low);
  }
  if (axis.scale === "quantile") {
    return rank(axis.sorted!, value) / Math.max(1, axis.sorted!.length - 1);
  }
  return (value - axis.low) / (axis.high - axis.low);
}

export function valueAt(axis: Axis, position: number): number {
  const at = Math.max(0, Math.min(1, position));
  if (axis.scale === "log") return axis.low * (axis.high / axis.low) ** at;
  if (axis.scale === "quantile") {
    return axis.sorted![Math.round(at * (axis.sorted!.length - 1))] ?? NaN;
  }
  return axis.low + at * (axis.high - axis.low);
}

export function positionsOf(axis: Axis, rows: number): Float32Array {
  const positions = new Float32Array(rows);
  for (let row = 0; row < rows; ++row) positions[row] = positionOf(axis, axis.column.values[row]!);
  return positions;
}

export interface Tick {
  position: number;
  text: string;
}

export function ticksOf(axis: Axis, most = 6): Tick[] {
  if (axis.scale === "category") {
    const words = axis.column.dictionary;
    const step = Math.max(1, Math.ceil(words.length / 12));
    return words.flatMap((one, i) =>
      (i % step === 0 ? [{ position: i / axis.high, text: word(one) }] : []));
  }
  if (axis.scale === "log") {
    const [from, to] = [Math.ceil(Math.log10(axis.low)), Math.floor(Math.log10(axis.high))];
    if (to - from >= 1) {
      const step = Math.ceil((to - from + 1) / most);
      const powers: Tick[] = [];
      for (let p = from; p <= to; p += step) {
        powers.push({ position: positionOf(axis, 10 ** p), text: short(10 ** p) });
      }
      return powers;
    }
  }
  if (axis.scale !== "linear") {
    return [0, 0.25, 0.5, 0.75, 1].map((p) => ({ position: p, text: short(valueAt(axis, p)) }));
  }
  // One number says nothing of how much there is between two places.
  const counts = [most, most + 1, most + 2, 2 * most, 3 * most];
  const tries = counts.map((n) => niceValues(axis.low, axis.high, n));
  const values = tries.find((one) => one.length > 1) ?? tries[0]!;
  const texts = distinct(values);
  return values.map((value, i) => ({ position: positionOf(axis, value), text: texts[i]! }));
}

// Round numbers between two, at most so many.
export function niceValues(low: number, high: number, most: number): number[] {
  const raw = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw) ?? 10 * power;
  const values: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) {
    values.push(Number((i * step).toPrecision(12)));
  }
  return values;
}

// 0 for the worst of the rows, 1 for the best, by rank: one outlier does not take all the colours.
// Equal ones share the mean of their ranks.
export function qualityOf(
  objective: Float64Array, rows: number, maximize: boolean,
): Float32Array {
  const values = objective.subarray(0, rows);
  const sorted = values.filter(Number.isFinite).sort();
  const last = sorted.length - 1;
  const quality = new Float32Array(rows).fill(NaN);
  for (let row = 0; row < rows; ++row) {
    const value = values[row]!;
    if (!Number.isFinite(value)) continue;
    const first = rank(sorted, value);
    const end = sorted[first + 1] === value ? rank(sorted, value, true) - 1 : first;
    const share = last < 1 ? 1 : (first + end) / 2 / last;
    quality[row] = maximize || last < 1 ? share : 1 - share;
  }
  return quality;
}

const known = new WeakMap<TrialData, Float32Array>();

// The same for all panels, as long as nothing has changed.
export function qualityOfTrials(data: TrialData): Float32Array {
  let quality = known.get(data);
  if (!quality) {
    const { table, experiment } = data;
    quality = qualityOf(table.values("objective"), table.rows, maximizes(experiment));
    known.set(data, quality);
  }
  return quality;
}
