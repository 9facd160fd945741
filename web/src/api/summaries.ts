// How all experiments are getting on, in one request; and then what has changed since.
import type { Key } from "./experiments.js";
import { ApiError, pages } from "./http.js";

// As the server prints it (GetSummary in /openapi.json), as far as the list reads it.
export interface Summary {
  namespace: string;
  name: string;
  state: string;
  message?: string;
  waiting?: string;
  algorithm: string;
  metric: string;
  created?: string;
  trials: number;
  trialsEnded: number;
  trialsPending: number;
  trialsRunning: number;
  trialsSucceeded: number;
  trialsFailed: number;
  trialsKilled: number;
  trialsEarlyStopped: number;
  trialsMetricsUnavailable: number;
  maxTrials?: number;
  best?: { trial: number; value: number };
  asOf: string;
  cost: number;
  costPerHour: number;
  currency: string;
  preemptions: number;
  front?: number; // trials on it, where there are several objectives
  tags?: string[];
  onSuccess?: string; // state of the job that follows it
}

// The server's revision, and by namespace/name what was so then.
export interface Summaries {
  revision: number;
  all: Map<string, Summary>;
}

// Beside `old` only what has changed since is asked for; `gone` are those that were deleted
// meanwhile, of which some may have been made again.
export async function readSummaries(
  old?: Summaries, gone: string[] = [], abort?: AbortSignal,
): Promise<Summaries> {
  const all = new Map(old?.all);
  for (const id of gone) all.delete(id);
  const since = old ? `&since=${old.revision}` : "";
  let revision = 0;
  try {
    await pages<Summary>(`api/v1/summaries?pageSize=10000${since}`, (items, at) => {
      if (revision === 0) revision = at;
      for (const one of items) all.set(`${one.namespace}/${one.name}`, one);
    }, abort);
  } catch (error) {
    // Another store than before: all of it.
    if (old && error instanceof ApiError && error.status === 410) {
      return readSummaries(undefined, [], abort);
    }
    throw error;
  }
  return { revision, all };
}

export function keyOfSummary(summary: Summary): Key {
  return { ns: summary.namespace, name: summary.name };
}

// Those that there are, for a choice of one of them.
export async function listKeys(abort?: AbortSignal): Promise<Key[]> {
  return [...(await readSummaries(undefined, [], abort)).all.values()].map(keyOfSummary);
}
