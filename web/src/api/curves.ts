// Curves of several trials, reduced by the server to what a picture can show.
import type { Arrays } from "./binary.js";
import { readArrays } from "./binary.js";
import type { Key } from "./experiments.js";
import { pathOf } from "./experiments.js";
import { ask } from "./http.js";

export interface ShownCurve {
  trial: number;
  x: ArrayLike<number>;
  y: ArrayLike<number>;
}

export interface CurvesAsked {
  metric: string;
  trials: number[];
  time: boolean; // over seconds, else over steps
  log: boolean;
  pixels: number;
}

interface CurvesHead {
  curves: { trial: number; length: number; offset: number }[];
}

export async function readShown(
  key: Key, asked: CurvesAsked, abort: AbortSignal,
): Promise<ShownCurve[]> {
  if (asked.trials.length === 0) return [];
  const query = new URLSearchParams({
    metric: asked.metric, trials: asked.trials.join(","), px: String(asked.pixels),
    axis: asked.time ? "time" : "step", ...(asked.log ? { scale: "log" } : {}),
  });
  const response = await ask(`${pathOf(key)}/curves?${query}`, { abort });
  const { head, at }: Arrays<CurvesHead> = readArrays(await response.arrayBuffer());
  return head.curves.map(({ trial, length, offset }) => ({
    trial, x: at(offset, length), y: at(offset + length, length),
  }));
}
