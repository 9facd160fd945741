// The worker that draws parallel coordinates, for the page: one for all pictures, started by the
// first.
import type { RasterTask } from "./raster.js";
import { recording } from "./recording.js";

let worker: Worker | null = null;
let last = 0;
const waiting = new Map<number, (picture: ImageData) => void>();

// Null where there are no workers; then there is no picture.
function theWorker(): Worker | null {
  if (worker) return worker;
  const script = document.querySelector<HTMLScriptElement>("script[data-raster]");
  if (!script) return null;
  // A file from the disk may start scripts without imports only, which is what a report has.
  const type = recording() ? "classic" : "module";
  worker = new Worker(new URL(script.dataset["raster"]!, document.baseURI), { type });
  worker.onmessage = (event) => {
    const { id, width, height, pixels } = event.data as {
      id: number; width: number; height: number; pixels: Uint8ClampedArray<ArrayBuffer>;
    };
    waiting.get(id)?.(new ImageData(pixels, width, height));
    for (const known of waiting.keys()) if (known <= id) waiting.delete(known);
  };
  return worker;
}

export function draw(task: RasterTask): Promise<ImageData> {
  return new Promise((resolve) => {
    const id = ++last;
    waiting.set(id, resolve);
    theWorker()?.postMessage({ id, task });
  });
}
