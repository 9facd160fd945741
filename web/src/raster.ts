// Polylines over parallel axes as a picture of densities: how many lines cross a pixel decides how
// opaque it is, how good they are on average its colour: where a parameter does not matter, all of
// its axis has one colour. 100,000 lines take half a second, and hide nothing. Run in a worker
// (raster.worker.ts); a pure function.

export interface RasterTask {
  width: number; // in pixels of the screen
  height: number;
  foot: number; // of it, the lowest: the lane of what has no value; 0 = there is none
  positions: Float32Array[]; // an axis each: of every row 0 (bottom) to 1, NaN = has no value
  x: number[]; // of the axes, in pixels
  quality: Float32Array; // of every row: 0 = worst, 1 = best, NaN = without a result
  chosen: Uint8Array; // of every row: 1 = shown in colour
  colours: [number, number, number][]; // from the worst to the best
  faint: [number, number, number]; // of those that are not chosen
}

// Of every pixel how many lines cross it and how good they are, in one number, since to add up is
// most of the work: weights in `unit`s times HIGH, and the sum of weight times quality. Whole
// numbers below 2^53, which a Float64 has exactly.
interface Layer {
  cells: Float64Array;
  unit: number;
}

const HIGH = 2 ** 26;
const LEAST_UNITS = 4096; // of a line's weight, where there are few lines

const weightIn = (layer: Layer, pixel: number) =>
  Math.floor(layer.cells[pixel]! / HIGH) / layer.unit;
const goodIn = (layer: Layer, pixel: number) => (layer.cells[pixel]! % HIGH) / layer.unit;

function emptyLayer(task: RasterTask): Layer {
  const most = HIGH / (task.chosen.length + 1);
  const unit = Math.min(LEAST_UNITS, 2 ** Math.floor(Math.log2(most)));
  return { cells: new Float64Array(task.width * task.height), unit };
}

// Where what lies at a position of an axis is drawn, from the top; NaN = nowhere.
export function heightAt(task: { height: number; foot: number }, position: number): number {
  if (position !== position) return task.foot > 0 ? task.height - task.foot / 2 : NaN;
  return MARGIN + (1 - position) * (task.height - task.foot - 1 - 2 * MARGIN);
}

// Some lines between two axes that go from one height to another.
interface Lines {
  from: number;
  to: number;
  count: number;
  good: number; // the sum of their qualities
}

interface Gap {
  width: number; // of the picture
  height: number;
  x0: number;
  x1: number;
  wide: number;
}

// The innermost loop of the picture: numbers only.
function drawLines({ width, height, x0, x1, wide }: Gap, layer: Layer, lines: Lines): void {
  const { cells } = layer;
  const begin = Math.max(0, Math.ceil(x0));
  const end = Math.min(width - 1, Math.floor(x1));
  const slope = (lines.to - lines.from) / (x1 - x0);
  // A steep line goes through several pixels of a column.
  const thick = Math.abs(slope);
  const half = thick > 1 ? thick / 2 : 0;
  const unit = thick > 1 ? layer.unit / thick : layer.unit;
  const weight = Math.round(unit * lines.count);
  const added = weight * HIGH + Math.min(weight, Math.round(unit * lines.good));
  let y = lines.from + (begin - x0) * slope + 0.5;
  if (wide === 0 && thick <= 1) {
    for (let x = begin; x <= end; ++x, y += slope) cells[(y | 0) * width + x]! += added;
    return;
  }
  for (let x = begin; x <= end; ++x, y += slope) {
    let pixel = ((y - half) | 0) * width + x;
    const last = Math.min(((y + half) | 0) + wide, height - 1) * width + x;
    for (; pixel <= last; pixel += width) cells[pixel]! += added;
  }
}

const STEPS = 4; // within a pixel; nearer than that two heights are the same
const MOST_LEVELS = 64; // of an axis that has few

// The heights of an axis, each row's by its index among them.
interface Heights {
  of: Float32Array;
  index: Uint16Array;
}

// Of an axis with few values these, exactly; else steps of a quarter of a pixel.
function heightsOf(task: RasterTask, axis: number): Heights {
  const positions = task.positions[axis]!;
  const index = new Uint16Array(positions.length);
  const known = new Map<number, number>();
  for (let row = 0; row < positions.length && known.size <= MOST_LEVELS; ++row) {
    const at = positions[row]!;
    let found = known.get(at);
    if (found === undefined) known.set(at, found = known.size);
    index[row] = found;
  }
  if (known.size <= MOST_LEVELS) {
    return { of: Float32Array.from(known.keys(), (at) => heightAt(task, at)), index };
  }
  const [top, bottom] = [heightAt(task, 1), heightAt(task, 0)];
  const last = Math.round((bottom - top) * STEPS);
  const of = Float32Array.from({ length: last + 2 }, (_, i) => top + i / STEPS);
  of[last + 1] = heightAt(task, NaN);
  for (let row = 0; row < positions.length; ++row) {
    const at = positions[row]!;
    index[row] = at !== at ? last + 1 : Math.round((1 - at) * last);
  }
  return { of, index };
}

// Where so many lines share their ends that it saves work, they are drawn together.
function drawTogether(
  task: RasterTask, gap: Gap, layers: [Layer, Layer], [left, right]: [Heights, Heights],
): void {
  const { chosen, quality } = task;
  const sides = right.of.length;
  const [counts, goods] = [0, 1].map(() => new Float64Array(2 * left.of.length * sides)) as
    [Float64Array, Float64Array];
  for (let row = 0; row < chosen.length; ++row) {
    const at = 2 * (left.index[row]! * sides + right.index[row]!) + (chosen[row] === 1 ? 1 : 0);
    const known = quality[row]!;
    ++counts[at]!;
    if (known === known) goods[at]! += known;
  }
  for (let at = 0; at < counts.length; ++at) {
    const pair = at >> 1;
    const [from, to] = [left.of[Math.floor(pair / sides)]!, right.of[pair % sides]!];
    if (counts[at] === 0 || from !== from || to !== to) continue; // NaN
    drawLines(gap, layers[at % 2]!, { from, to, count: counts[at]!, good: goods[at]! });
  }
}

function drawEach(task: RasterTask, gap: Gap, layers: [Layer, Layer], axis: number): void {
  const { chosen, quality } = task;
  const [left, right] = [task.positions[axis]!, task.positions[axis + 1]!];
  const lines = { from: 0, to: 0, count: 1, good: 0 };
  for (let row = 0; row < chosen.length; ++row) {
    lines.from = heightAt(task, left[row]!);
    lines.to = heightAt(task, right[row]!);
    if (lines.from !== lines.from || lines.to !== lines.to) continue; // NaN
    const known = quality[row]!;
    lines.good = known !== known ? 0 : known;
    drawLines(gap, layers[chosen[row] === 1 ? 1 : 0]!, lines);
  }
}

const MARGIN = 2;

export function raster(task: RasterTask): Uint8ClampedArray<ArrayBuffer> {
  const layers: [Layer, Layer] = [emptyLayer(task), emptyLayer(task)];
  const { width, height, chosen } = task;
  const wide = chosen.length > 300 ? 0 : 1; // where there are few they may be wider
  const heights = task.positions.map((_, axis) => heightsOf(task, axis));
  for (let axis = 0; axis + 1 < heights.length; ++axis) {
    const gap = { width, height, x0: task.x[axis]!, x1: task.x[axis + 1]!, wide };
    const ends: [Heights, Heights] = [heights[axis]!, heights[axis + 1]!];
    if (2 * ends[0].of.length * ends[1].of.length < chosen.length) {
      drawTogether(task, gap, layers, ends);
    } else {
      drawEach(task, gap, layers, axis);
    }
  }
  return paint(task, layers);
}

function mostIn(layer: Layer): number {
  return Math.floor(layer.cells.reduce((a, b) => (b > a ? b : a), 0) / HIGH) / layer.unit;
}

function paint(task: RasterTask, layers: [Layer, Layer]): Uint8ClampedArray<ArrayBuffer> {
  const [faint, chosen] = layers;
  const out = new Uint8ClampedArray(task.width * task.height * 4);
  const scale = (n: number) => (n <= 1 ? 1 : 1 / Math.log1p(n));
  const [faintScale, scaleOf] = [scale(mostIn(faint)), scale(mostIn(chosen))];
  const few = task.chosen.reduce((sum, one) => sum + one, 0) < 200;
  for (let i = 0; i < task.width * task.height; ++i) {
    if (chosen.cells[i]! > 0) {
      const n = weightIn(chosen, i);
      const [r, g, b] = shade(task.colours, goodIn(chosen, i) / n);
      const dense = Math.min(1, Math.log1p(n) * scaleOf);
      put(out, i, [r, g, b, few ? 0.55 + 0.45 * dense : 0.18 + 0.82 * dense]);
    } else if (faint.cells[i]! > 0) {
      const dense = Math.min(1, Math.log1p(weightIn(faint, i)) * faintScale);
      put(out, i, [...task.faint, 0.1 + 0.25 * dense]);
    }
  }
  return out;
}

function put(out: Uint8ClampedArray, i: number, rgba: [number, number, number, number]): void {
  out[4 * i] = rgba[0];
  out[4 * i + 1] = rgba[1];
  out[4 * i + 2] = rgba[2];
  out[4 * i + 3] = 255 * rgba[3];
}

export function shade(colours: [number, number, number][], at: number): [number, number, number] {
  const place = Math.max(0, Math.min(1, at)) * (colours.length - 1);
  const i = Math.min(Math.floor(place), colours.length - 2);
  const share = place - i;
  const [a, b] = [colours[i]!, colours[i + 1]!];
  return [0, 1, 2].map((c) => a[c]! + (b[c]! - a[c]!) * share) as [number, number, number];
}

// Viridis (van der Walt and Smith, 2015): even steps to the eye, for any colour vision, and on
// paper.
export const VIRIDIS: [number, number, number][] = [
  [68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129],
  [92, 200, 99], [170, 220, 50], [253, 231, 37],
];
