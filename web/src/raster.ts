// Polylines over parallel axes as a picture of densities: how many lines cross a pixel decides how
// opaque it is, how good they are on average its colour: where a parameter does not matter, all of
// its axis has one colour. 100,000 lines take a second or less, and hide nothing. Run in a worker
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

interface Layer {
  count: Float32Array;
  quality: Float32Array; // their sum
}

// Where what lies at a position of an axis is drawn, from the top; NaN = nowhere.
export function heightAt(task: { height: number; foot: number }, position: number): number {
  if (position !== position) return task.foot > 0 ? task.height - task.foot / 2 : NaN;
  return MARGIN + (1 - position) * (task.height - task.foot - 1 - 2 * MARGIN);
}

// All lines between two neighbouring axes. The innermost loop of the picture: numbers only.
function drawBetween(task: RasterTask, layers: [Layer, Layer], axis: number): void {
  const { width, height, chosen, quality } = task;
  const [left, right] = [task.positions[axis]!, task.positions[axis + 1]!];
  const [x0, x1] = [task.x[axis]!, task.x[axis + 1]!];
  const [begin, end] = [Math.max(0, Math.ceil(x0)), Math.min(width - 1, Math.floor(x1))];
  const [top, lane] = [heightAt(task, 1), heightAt(task, NaN)];
  const span = heightAt(task, 0) - top;
  // Where there are few they may be wider.
  const wide = chosen.length > 300 ? 0 : 1;
  for (let row = 0; row < chosen.length; ++row) {
    const [a, b] = [left[row]!, right[row]!];
    const from = a !== a ? lane : top + (1 - a) * span;
    const to = b !== b ? lane : top + (1 - b) * span;
    if (from !== from || to !== to) continue; // NaN
    const { count, quality: sum } = layers[chosen[row] === 1 ? 1 : 0];
    const known = quality[row]!;
    const good = known !== known ? 0 : known;
    const slope = (to - from) / (x1 - x0);
    // A steep line goes through several pixels of a column.
    const thick = Math.abs(slope);
    const half = thick > 1 ? thick / 2 : 0;
    const weight = thick > 1 ? 1 / thick : 1;
    let y = from + (begin - x0) * slope + 0.5;
    for (let x = begin; x <= end; ++x, y += slope) {
      let pixel = ((y - half) | 0) * width + x;
      const last = Math.min(((y + half) | 0) + wide, height - 1) * width + x;
      for (; pixel <= last; pixel += width) {
        count[pixel]! += weight;
        sum[pixel]! += good * weight;
      }
    }
  }
}

const MARGIN = 2;

export function raster(task: RasterTask): Uint8ClampedArray<ArrayBuffer> {
  const pixels = task.width * task.height;
  const layers = [0, 1].map(() => ({
    count: new Float32Array(pixels), quality: new Float32Array(pixels),
  })) as [Layer, Layer];
  for (let axis = 0; axis + 1 < task.positions.length; ++axis) drawBetween(task, layers, axis);
  return paint(task, layers);
}

function paint(task: RasterTask, layers: [Layer, Layer]): Uint8ClampedArray<ArrayBuffer> {
  const [faint, chosen] = layers;
  const out = new Uint8ClampedArray(task.width * task.height * 4);
  const most = (layer: Layer) => layer.count.reduce((a, b) => (b > a ? b : a), 0);
  const scale = (n: number) => (n <= 1 ? 1 : 1 / Math.log1p(n));
  const [faintScale, scaleOf] = [scale(most(faint)), scale(most(chosen))];
  const few = task.chosen.reduce((sum, one) => sum + one, 0) < 200;
  for (let i = 0; i < task.width * task.height; ++i) {
    const n = chosen.count[i]!;
    if (n > 0) {
      const [r, g, b] = shade(task.colours, chosen.quality[i]! / n);
      const dense = Math.min(1, Math.log1p(n) * scaleOf);
      put(out, i, [r, g, b, few ? 0.55 + 0.45 * dense : 0.18 + 0.82 * dense]);
    } else if (faint.count[i]! > 0) {
      const dense = Math.min(1, Math.log1p(faint.count[i]!) * faintScale);
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
