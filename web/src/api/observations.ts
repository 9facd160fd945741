// The metric values of trials, as curves.
import type { Key } from "./experiments.js";
import { pathOf } from "./experiments.js";
import { pages } from "./http.js";
import type { Observation } from "./records.js";
import { numberOf } from "./records.js";

export interface Curve {
  trial: number;
  attempt: number;
  superseded: boolean;
  x: number[]; // steps
  y: number[];
  time: number[]; // seconds since 1970
}

// By metric, one curve an attempt and kind; `whole` also those that a later attempt has run again.
export async function readCurves(
  key: Key,
  trial: number,
  how: { metric?: string; whole?: boolean; abort?: AbortSignal },
): Promise<Map<string, Curve[]>> {
  const query = new URLSearchParams({ pageSize: "10000" });
  if (how.metric !== undefined) query.set("metric", how.metric);
  if (how.whole) query.set("allAttempts", "true");
  const found = new Map<string, Map<string, Curve>>();
  await pages<Observation>(
    `${pathOf(key)}/trials/${trial}/observations?${query}`,
    (items) => {
      for (const one of items) {
        const curves = found.get(one.metric) ?? new Map<string, Curve>();
        found.set(one.metric, curves);
        const id = how.whole ? `${one.attempt} ${one.superseded ?? false}` : "";
        let curve = curves.get(id);
        if (!curve) {
          curve = {
            trial, attempt: one.attempt, superseded: one.superseded ?? false,
            x: [], y: [], time: [],
          };
          curves.set(id, curve);
        }
        curve.x.push(one.step);
        curve.y.push(numberOf(one.value));
        curve.time.push(one.time === undefined ? NaN : Date.parse(one.time) / 1000);
      }
    },
    how.abort,
  );
  return new Map([...found].map(([metric, curves]) => [metric, [...curves.values()].map(sorted)]));
}

// Pages come by attempt and step, and a step without values of this metric leaves no gap.
function sorted(curve: Curve): Curve {
  const order = curve.x.map((_, i) => i).sort((a, b) => curve.x[a]! - curve.x[b]!);
  const pick = (values: number[]) => order.map((i) => values[i]!);
  return { ...curve, x: pick(curve.x), y: pick(curve.y), time: pick(curve.time) };
}
