// Many dots as a picture: what falls into the same pixel becomes one, as opaque as all of them on
// top of each other and of their mean colour. Of 100,000 dots it takes some milliseconds where
// drawing each takes half a second. Pure functions.
import { shade } from "./raster.js";

const OPACITY = 0.6; // of one dot

export interface Dots {
  width: number; // in pixels
  height: number;
  x: Float32Array; // of each dot, in pixels; NaN = it has no place
  y: Float32Array;
  quality: Float32Array; // 0 = worst, 1 = best, NaN = without a result
  colours: [number, number, number][]; // from the worst to the best
}

export interface DotPicture {
  pixels: Uint8ClampedArray<ArrayBuffer>;
  dots: number; // that lie in the picture
  taken: number; // pixels with a dot
}

const DOTS_A_TURN = 20_000;

export function* drawDots(task: Dots): Generator<void, DotPicture> {
  const { width, height, x, y, quality } = task;
  const counts = new Float32Array(width * height);
  const sums = new Float32Array(width * height);
  let dots = 0;
  for (let i = 0; i < x.length; ++i) {
    if (i % DOTS_A_TURN === DOTS_A_TURN - 1) yield;
    const [left, top] = [Math.floor(x[i]!), Math.floor(y[i]!)];
    if (!(left >= 0 && left < width && top >= 0 && top < height)) continue;
    const pixel = top * width + left;
    const good = quality[i]!;
    counts[pixel]! += 1;
    sums[pixel]! += good !== good ? 0 : good;
    ++dots;
  }
  yield;
  const pixels = new Uint8ClampedArray(4 * width * height);
  let taken = 0;
  for (let pixel = 0; pixel < counts.length; ++pixel) {
    const n = counts[pixel]!;
    if (n === 0) continue;
    ++taken;
    pixels.set(shade(task.colours, sums[pixel]! / n), 4 * pixel);
    pixels[4 * pixel + 3] = 255 * (1 - (1 - OPACITY) ** n);
  }
  return { pixels, dots, taken };
}
