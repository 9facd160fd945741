// The attempts of a timeline as parts of lanes, and many of them as a picture by the pixel: what
// falls into the same column of the same row becomes one pixel of their mean colour, the more
// opaque the more they are. Pure, and in turns (turns.ts): there may be any number of attempts.
import type { AttemptTable } from "./api/timeline.js";
import type { CauseLook } from "./cause.js";
import { lookOfCause } from "./cause.js";

const PARTS_A_TURN = 5_000;

// One place an attempt, as in the table. Times in ms since 1970.
export interface Parts {
  table: AttemptTable;
  queued: Float64Array; // what came before its start
  from: Float64Array;
  to: Float64Array; // now, where it runs
  look: Uint8Array; // of `looks`
  looks: CauseLook[];
}

export function* partsOf(table: AttemptTable, now: number): Generator<void, Parts> {
  const { rows } = table;
  const [queued, from, to] = [rows, rows, rows].map((n) => new Float64Array(n)) as
    [Float64Array, Float64Array, Float64Array];
  const look = new Uint8Array(rows);
  const looks: CauseLook[] = [];
  const known = new Map<number, number>(); // by state and cause
  const before = new Map<number, number>(); // by trial: the end of its last attempt
  const [trial, created] = [table.number("trial"), table.number("created")];
  const [start, end] = [table.number("start"), table.number("end")];
  const [state, cause] = [table.code("state"), table.code("cause")];
  for (let i = 0; i < rows; ++i) {
    if (i % PARTS_A_TURN === PARTS_A_TURN - 1) yield;
    const made = created[i] || now;
    to[i] = end[i] || now;
    from[i] = start[i] || to[i]!; // one that never ran has waited until its end
    queued[i] = Math.min(from[i]!, before.get(trial[i]!) ?? made, made);
    before.set(trial[i]!, to[i]!);
    const code = state[i]! * 256 + cause[i]!;
    let found = known.get(code);
    if (found === undefined) {
      const its = lookOfCause(table.word("state", i), table.word("cause", i) || null);
      found = looks.findIndex((one) => one.word === its.word);
      if (found < 0) found = looks.push(its) - 1;
      known.set(code, found);
    }
    look[i] = found;
  }
  return { table, queued, from, to, look, looks };
}

// Those of the parts that are shown, lane by lane: those of lane i are items[start[i]] up to
// items[start[i + 1]], in the order of the table.
export interface Lanes {
  parts: Parts;
  count: number;
  name: (lane: number) => string;
  start: Uint32Array;
  items: Uint32Array;
  ofLook: Uint32Array; // how many have each look
  begin: number;
  end: number;
}

interface LaneChoice {
  byNode: boolean;
  trials: Set<number> | null; // null = all
}

// Of each part the number of its lane, or -1; and the names of the lanes.
function* assign(parts: Parts, how: LaneChoice): Generator<void, [Int32Array, string[]]> {
  const { table } = parts;
  const [trial, node] = [table.number("trial"), table.code("node")];
  const own = new Int32Array(table.rows).fill(-1);
  const known = new Map<number, number>();
  const names: string[] = [];
  for (let i = 0; i < table.rows; ++i) {
    if (i % PARTS_A_TURN === PARTS_A_TURN - 1) yield;
    if (how.trials && !how.trials.has(trial[i]!)) continue;
    const key = how.byNode ? node[i]! : trial[i]!;
    let lane = known.get(key);
    if (lane === undefined) {
      lane = names.push(how.byNode ? (table.word("node", i) || "waits") : String(key)) - 1;
      known.set(key, lane);
    }
    own[i] = lane;
  }
  if (!how.byNode) return [own, names];
  const order = names.map((_, i) => i)
    .sort((a, b) => names[a]!.localeCompare(names[b]!, "en", { numeric: true }));
  const place = new Int32Array(names.length);
  order.forEach((lane, i) => (place[lane] = i));
  for (let i = 0; i < own.length; ++i) if (own[i]! >= 0) own[i] = place[own[i]!]!;
  return [own, order.map((lane) => names[lane]!)];
}

export function* lanesOf(parts: Parts, how: LaneChoice): Generator<void, Lanes> {
  const [own, names] = yield* assign(parts, how);
  yield;
  const start = new Uint32Array(names.length + 1);
  const ofLook = new Uint32Array(parts.looks.length);
  let [begin, end] = [Infinity, -Infinity];
  for (let i = 0; i < own.length; ++i) {
    if (own[i]! < 0) continue;
    start[own[i]! + 1]! += 1;
    ofLook[parts.look[i]!]! += 1;
    begin = Math.min(begin, parts.queued[i]!);
    end = Math.max(end, parts.to[i]!);
  }
  for (let lane = 0; lane < names.length; ++lane) start[lane + 1]! += start[lane]!;
  yield;
  const items = new Uint32Array(start[names.length]!);
  const next = start.slice();
  for (let i = 0; i < own.length; ++i) if (own[i]! >= 0) items[next[own[i]!]!++] = i;
  const name = (lane: number) => names[lane] ?? "";
  return { parts, count: names.length, name, start, items, ofLook, begin, end };
}

// ---- by the pixel ------------------------------------------------------------------------------

export type Rgb = [number, number, number];

export interface DensityTask {
  lanes: Lanes;
  first: number; // the lanes from this one
  last: number; // up to this one
  from: number; // ms since 1970, at the left edge
  to: number; // at the right one
  width: number; // in pixels
  height: number; // at most as many as lanes
  colours: Rgb[]; // of each look
  waiting: Rgb;
}

export interface Density {
  pixels: Uint8ClampedArray<ArrayBuffer>;
  attempts: number; // that lie in the picture
}

// The row of pixels of a lane.
export function rowOfLane(task: DensityTask, lane: number): number {
  return Math.floor(((lane - task.first) * task.height) / (task.last - task.first));
}

// The first lane of a row of pixels.
export function laneOfRow(task: DensityTask, row: number): number {
  return task.first + Math.ceil((row * (task.last - task.first)) / task.height);
}

interface Sums {
  of: Float32Array; // how many, of each pixel
  red: Float32Array;
  green: Float32Array;
  blue: Float32Array;
}

interface Found {
  drawn: number;
  attempts: number; // one that has waited and run is drawn twice
}

// Where parts begin and end, of one colour: +1 where one begins, -1 behind its end.
function* edges(task: DensityTask, look: number, into: Int32Array): Generator<void, Found> {
  const { lanes, width } = task;
  const { parts, start, items } = lanes;
  const scale = width / (task.to - task.from);
  const stride = width + 1;
  const found: Found = { drawn: 0, attempts: 0 };
  for (let lane = task.first; lane < task.last; ++lane) {
    const row = rowOfLane(task, lane) * stride;
    for (let at = start[lane]!; at < start[lane + 1]!; ++at) {
      if (at % PARTS_A_TURN === PARTS_A_TURN - 1) yield;
      const i = items[at]!;
      const ran = !Number.isNaN(parts.table.number("start")[i]!);
      const [a, b] = look < 0 ? [parts.queued[i]!, parts.from[i]!] : [parts.from[i]!, parts.to[i]!];
      if (look < 0 ? a >= b : !ran || parts.look[i] !== look) continue;
      const left = Math.floor((a - task.from) * scale);
      const right = Math.max(left + 1, Math.ceil((b - task.from) * scale));
      if (right <= 0 || left >= width) continue;
      ++found.drawn;
      if (look >= 0 || !ran) ++found.attempts;
      into[row + Math.max(0, left)]! += 1;
      into[row + Math.min(width, right)]! -= 1;
    }
  }
  return found;
}

function* addLayer(task: DensityTask, sums: Sums, layer: [Int32Array, Rgb]): Generator<void, void> {
  const [marks, [red, green, blue]] = layer;
  for (let row = 0; row < task.height; ++row) {
    if (row % 64 === 63) yield;
    let n = 0;
    for (let x = 0; x < task.width; ++x) {
      n += marks[row * (task.width + 1) + x]!;
      if (n === 0) continue;
      const pixel = row * task.width + x;
      sums.of[pixel]! += n;
      sums.red[pixel]! += n * red;
      sums.green[pixel]! += n * green;
      sums.blue[pixel]! += n * blue;
    }
  }
}

export function* density(task: DensityTask): Generator<void, Density> {
  const size = task.width * task.height;
  const [of, red, green, blue] = [0, 1, 2, 3].map(() => new Float32Array(size)) as
    [Float32Array, Float32Array, Float32Array, Float32Array];
  const sums = { of, red, green, blue };
  const marks = new Int32Array((task.width + 1) * task.height);
  let attempts = 0;
  for (let look = -1; look < task.colours.length; ++look) {
    yield;
    const found = yield* edges(task, look, marks);
    attempts += found.attempts;
    if (found.drawn === 0) continue;
    yield* addLayer(task, sums, [marks, look < 0 ? task.waiting : task.colours[look]!]);
    marks.fill(0);
  }
  return { pixels: yield* paint(task, sums), attempts };
}

function* paint(
  task: DensityTask, sums: Sums,
): Generator<void, Uint8ClampedArray<ArrayBuffer>> {
  const pixels = new Uint8ClampedArray(4 * sums.of.length);
  let most = 1;
  for (const n of sums.of) most = Math.max(most, n);
  const scale = 1 / Math.log1p(most);
  for (let i = 0; i < sums.of.length; ++i) {
    if (i % (task.width * 64) === 0) yield;
    const n = sums.of[i]!;
    if (n === 0) continue;
    pixels[4 * i] = sums.red[i]! / n;
    pixels[4 * i + 1] = sums.green[i]! / n;
    pixels[4 * i + 2] = sums.blue[i]! / n;
    pixels[4 * i + 3] = 255 * (0.3 + 0.7 * Math.log1p(n) * scale);
  }
  return pixels;
}

// From the first to behind the last lane of which something lies in a span of time.
export function* lanesWithin(
  lanes: Lanes, from: number, to: number,
): Generator<void, [number, number]> {
  const { parts, start, items } = lanes;
  let [first, last] = [lanes.count, 0];
  for (let lane = 0; lane < lanes.count; ++lane) {
    if (lane % PARTS_A_TURN === PARTS_A_TURN - 1) yield;
    for (let at = start[lane]!; at < start[lane + 1]!; ++at) {
      const i = items[at]!;
      if (parts.queued[i]! > to || parts.to[i]! < from) continue;
      first = Math.min(first, lane);
      last = lane + 1;
      break;
    }
  }
  return first < last ? [first, last] : [0, lanes.count];
}

// The parts of these lanes that touch a span of time: those that a pointer is on.
export function partsAt(
  lanes: Lanes, [first, last]: [number, number], [from, to]: [number, number],
): number[] {
  const { parts, start, items } = lanes;
  const found: number[] = [];
  for (let at = start[first]!; at < start[Math.min(last, lanes.count)]!; ++at) {
    const i = items[at]!;
    if (parts.queued[i]! <= to && parts.to[i]! >= from) found.push(i);
  }
  return found;
}
