// Draws in the background; of what waits only the newest is drawn.
import type { RasterTask } from "./raster.js";
import { raster } from "./raster.js";

const scope = self as unknown as {
  onmessage: (event: MessageEvent<{ id: number; task: RasterTask }>) => void;
  postMessage: (message: unknown, transfer: Transferable[]) => void;
};

let newest = 0;

scope.onmessage = (event) => {
  const { id, task } = event.data;
  newest = id;
  // What has come meanwhile is looked at first.
  setTimeout(() => {
    if (id !== newest) return;
    const pixels = raster(task);
    scope.postMessage({ id, width: task.width, height: task.height, pixels }, [pixels.buffer]);
  });
};
