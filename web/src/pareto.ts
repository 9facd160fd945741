// Fronts: the points that no other one is better than. Everything here is about losses, which are
// to be small; an objective that is to be great is negated first. Pure functions.
//
// With two objectives a front is found by sorting and one pass, O(n log n); with k of them by
// divide and conquer over the sorted points, about O(n log^(k-1) n) (Kung, Luccio and Preparata,
// "On finding the maxima of a set of vectors", 1975).
import type { TrialColumns } from "./api/columns.js";
import type { Experiment } from "./api/records.js";
import type { Objective } from "./objectives.js";
import { neededColumns, objectivesOf } from "./objectives.js";

type Losses = Float64Array[]; // one array an objective, by row

const FEW = 24; // so many points are compared each with each

// Whether the first is as good as the second in the objectives from `from` on.
function asGood(losses: Losses, from: number, a: number, b: number): boolean {
  for (let k = from; k < losses.length; ++k) if (losses[k]![a]! > losses[k]![b]!) return false;
  return true;
}

// Those of `later`, in any order, to which none of `earlier` is as good in the objectives from
// `from` on. In those before it all of `earlier` are as good as all of `later`.
function without(later: number[], earlier: number[], losses: Losses, from: number): number[] {
  if (later.length === 0 || earlier.length === 0) return later;
  if (from === losses.length - 2) return beyond(later, earlier, losses[from]!, losses[from + 1]!);
  if (later.length * earlier.length <= FEW * FEW) {
    return later.filter((b) => !earlier.some((a) => asGood(losses, from, a, b)));
  }
  const values = losses[from]!;
  const sorted = Float64Array.from([...later, ...earlier], (row) => values[row]!).sort();
  const [low, high] = [sorted[0]!, sorted[sorted.length - 1]!];
  if (low === high) return without(later, earlier, losses, from + 1);
  const middle = sorted[sorted.length >> 1]!;
  // Neither side is empty, so that each step has less to do.
  const isLow = middle > low ? (row: number) => values[row]! < middle
    : (row: number) => values[row]! <= middle;
  const [lowEarlier, highEarlier] = split(earlier, isLow);
  const [lowLater, highLater] = split(later, isLow);
  const kept = without(highLater, lowEarlier, losses, from + 1);
  return without(lowLater, lowEarlier, losses, from)
    .concat(without(kept, highEarlier, losses, from));
}

// The same where two objectives are left: one pass in the order of the first of them.
function beyond(
  later: number[], earlier: number[], first: Float64Array, last: Float64Array,
): number[] {
  const order = (a: number, b: number) => first[a]! - first[b]!;
  const before = [...earlier].sort(order);
  let [next, least] = [0, Infinity];
  return [...later].sort(order).filter((row) => {
    for (; next < before.length && first[before[next]!]! <= first[row]!; ++next) {
      least = Math.min(least, last[before[next]!]!);
    }
    return last[row]! < least;
  });
}

function split(rows: number[], isLow: (row: number) => boolean): [number[], number[]] {
  const [low, high]: [number[], number[]] = [[], []];
  for (const row of rows) (isLow(row) ? low : high).push(row);
  return [low, high];
}

function divide(rows: number[], losses: Losses): number[] {
  if (rows.length <= 1) return rows;
  const half = rows.length >> 1;
  const earlier = divide(rows.slice(0, half), losses);
  const later = divide(rows.slice(half), losses);
  return earlier.concat(without(later, earlier, losses, 1));
}

// The rows on the front, by the first loss. Of rows that are equal in all of them one is there:
// that with the least rank.
export function frontOf(
  losses: Losses, rows: ArrayLike<number>, rank: (row: number) => number = (row) => row,
): number[] {
  const compare = (a: number, b: number) => {
    for (let k = 0; k < losses.length; ++k) {
      const [left, right] = [losses[k]![a]!, losses[k]![b]!];
      if (left !== right) return left - right;
    }
    return 0;
  };
  const sorted = Array.from(rows).sort((a, b) => compare(a, b) || rank(a) - rank(b) || a - b);
  if (losses.length <= 2) {
    const last = losses[losses.length - 1]!;
    let least = Infinity;
    return sorted.filter((row) => last[row]! < least && ((least = last[row]!), true));
  }
  const different = sorted.filter((row, i) => i === 0 || compare(row, sorted[i - 1]!) !== 0);
  return divide(different, losses).sort(compare);
}

export function lossesOf(table: TrialColumns, objectives: Objective[]): Losses {
  return objectives.map(({ column, maximize }) => {
    const values = table.values(column).subarray(0, table.rows);
    return maximize ? values.map((value) => -value) : values;
  });
}

// ---- what became of the trials ------------------------------------------------------------------

export const enum Standing {
  Open, // it waits or runs
  Without, // it has ended without a result
  Broken, // it does not keep all constraints
  Kept,
  Front,
}

export interface Standings {
  of: Uint8Array; // by row
  front: number[]; // rows, by the first objective, best first
}

const OPEN = new Set(["Running", "Pending", "Created"]);
const USABLE = new Set(["Succeeded", "EarlyStopped"]);

// `listed`: what the server says is on the front; of equal trials it is one of them.
export function standingsOf(
  table: TrialColumns, experiment: Experiment, listed: Set<number>,
): Standings {
  const of = new Uint8Array(table.rows).fill(Standing.Without);
  const states = table.column("state");
  const values = neededColumns(experiment).map((name) => table.values(name));
  const broken = table.column("breaks")?.values;
  const kept: number[] = [];
  for (let row = 0; row < table.rows; ++row) {
    const state = states?.word(row) ?? "";
    if (OPEN.has(state)) of[row] = Standing.Open;
    if (!USABLE.has(state) || !values.every((one) => Number.isFinite(one[row]!))) continue;
    of[row] = broken && !Number.isNaN(broken[row]!) ? Standing.Broken : Standing.Kept;
    if (of[row] === Standing.Kept) kept.push(row);
  }
  const rank = (row: number) => (listed.has(table.trial(row)) ? -1 : row);
  const front = frontOf(lossesOf(table, objectivesOf(experiment)), kept, rank);
  for (const row of front) of[row] = Standing.Front;
  return { of, front };
}

// From one of a front to the next by way of the point that is as poor as both: all that is beyond
// the line is worse than one of the front. It begins and ends at the edges of the picture where x
// and y are worst. The front is in order of its x, best first; the answer is corners in turn.
export function stepLine(
  front: [x: number, y: number][], worst: { x: number; y: number },
): [number, number][] {
  let before = worst.y;
  const corners = front.flatMap(([x, y]): [number, number][] => {
    const step: [number, number][] = [[x, before], [x, y]];
    before = y;
    return step;
  });
  return front.length === 0 ? [] : [...corners, [worst.x, before]];
}

// ---- one of the front ---------------------------------------------------------------------------

// As `shirabe best --weights`: each loss as a part of its range over the front; the least weighted
// sum wins, of equal ones the lowest row. -1 where nothing is weighted.
export function pickByWeights(losses: Losses, front: number[], weights: number[]): number {
  if (front.length === 0 || !weights.some((one) => one > 0)) return -1;
  const sums = new Float64Array(front.length);
  losses.forEach((loss, k) => {
    let [least, most] = [Infinity, -Infinity];
    for (const row of front) {
      least = Math.min(least, loss[row]!);
      most = Math.max(most, loss[row]!);
    }
    if (!(most > least)) return;
    const weight = (weights[k] ?? 0) / (most - least);
    front.forEach((row, i) => (sums[i]! += weight * (loss[row]! - least)));
  });
  let best = 0;
  for (let i = 1; i < front.length; ++i) {
    const equal = sums[i] === sums[best];
    if (sums[i]! < sums[best]! || (equal && front[i]! < front[best]!)) best = i;
  }
  return front[best]!;
}
