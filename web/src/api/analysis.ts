// What a model makes of the trials (proto/shirabe/v1/analysis.proto). All of it has bands, or says
// why nothing can be told yet.
import type { Key } from "./experiments.js";
import { pathOf } from "./experiments.js";
import { getJson } from "./http.js";

export interface Estimate {
  value: number;
  low: number;
  high: number;
}

export interface Basis {
  results: number;
  leftOut: number;
  failed: number;
  active: number;
  explained?: number;
  tooFew?: string;
}

export interface Importance {
  basis: Basis;
  method: string;
  parameters: {
    parameter: string;
    total?: Estimate;
    firstOrder?: Estimate;
    verdict?: string;
    share?: number;
  }[];
  bestTrials?: number;
}

// The most important first; those that it does not know stay in their order behind them.
export function byImportance<T extends { name: string }>(
  columns: T[], importance: Importance | undefined,
): T[] {
  const known = importance?.parameters ?? [];
  const share = new Map(known.map((one) =>
    [`param.${one.parameter}`, one.total?.value ?? one.share ?? 0]));
  const of = (column: T) => share.get(column.name) ?? -1;
  return [...columns].sort((a, b) => of(b) - of(a));
}

export interface Ablation {
  basis: Basis;
  fromTrial?: number;
  toTrial?: number;
  from?: Estimate;
  to?: Estimate;
  steps: {
    parameter: string;
    fromValue: string;
    toValue: string;
    objective: Estimate;
    gain: Estimate;
  }[];
}

export interface GridAxis {
  parameter: string;
  values: string[];
  coordinates: number[];
  leftOut: number;
}

export interface PartialDependence {
  basis: Basis;
  axes: GridAxis[];
  mean: number[]; // of two axes the second varies fastest
  low: number[];
  high: number[];
}

export function readImportance(
  key: Key, method: string, abort?: AbortSignal,
): Promise<Importance> {
  return getJson(`${pathOf(key)}/importance?method=${method}`, abort);
}

// The server leaves empty texts out: here they are the values that they are.
export async function readAblation(key: Key, abort?: AbortSignal): Promise<Ablation> {
  const found = await getJson<Ablation>(`${pathOf(key)}/ablation`, abort);
  const steps = found.steps.map((one) => ({ ...one, fromValue: one.fromValue ?? "",
    toValue: one.toValue ?? "" }));
  return { ...found, steps };
}

export function partialDependencePath(key: Key, parameters: string[]): string {
  const query = new URLSearchParams({ parameter: parameters[0]! });
  if (parameters[1] !== undefined) query.set("with", parameters[1]);
  return `${pathOf(key)}/partial-dependence?${query}`;
}

export function readPartialDependence(
  key: Key, parameters: string[], abort?: AbortSignal,
): Promise<PartialDependence> {
  return getJson(partialDependencePath(key, parameters), abort);
}
