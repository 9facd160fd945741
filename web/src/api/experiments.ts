// Experiments, and what can be done to them.
import { signal } from "@preact/signals";
import { getJson, pages, sendJson } from "./http.js";
import type {
  Attempt, Candidate, Checkpoint, Event, Experiment, Finding, Rights, Trial,
} from "./records.js";

export interface Key {
  ns: string;
  name: string;
}

export function pathOf(key: Key): string {
  const [ns, name] = [encodeURIComponent(key.ns), encodeURIComponent(key.name)];
  return `api/v1/namespaces/${ns}/experiments/${name}`;
}

export function keyOf(experiment: Experiment): Key {
  return { ns: experiment.metadata.namespace, name: experiment.metadata.name };
}

export function idOf(key: Key): string {
  return `${key.ns}/${key.name}`;
}

export function keyFromId(id: string): Key {
  const slash = id.indexOf("/");
  return { ns: id.slice(0, slash), name: id.slice(slash + 1) };
}

export function getExperiment(key: Key, abort?: AbortSignal): Promise<Experiment> {
  return getJson(pathOf(key), abort);
}

export type Action = "pause" | "resume" | "stop" | "cancel";

export function act(key: Key, action: Action): Promise<{ message?: string }> {
  return sendJson("POST", `${pathOf(key)}:${action}`);
}

export function remove(key: Key): Promise<void> {
  return sendJson("DELETE", pathOf(key));
}

export interface Counts {
  parallelTrialCount?: number;
  maxTrialCount?: number;
}

export function scale(key: Key, counts: Counts): Promise<unknown> {
  return sendJson("POST", `${pathOf(key)}:scale`, counts);
}

export function retryTrial(key: Key, trial: number): Promise<{ message?: string }> {
  return sendJson("POST", `${pathOf(key)}/trials/${trial}:retry`);
}

export function stopTrial(key: Key, trial: number): Promise<{ message?: string }> {
  return sendJson("POST", `${pathOf(key)}/trials/${trial}:stop`);
}

// A further trial like another one, but for these values.
export function tryPoint(
  key: Key, parameters: Record<string, string>, like: number,
): Promise<{ message?: string }> {
  return sendJson("POST", `${pathOf(key)}:try`, { parameters, like });
}

export interface AnnotationChange {
  note?: string;
  addTags?: string[];
  removeTags?: string[];
}

// Of a trial, or of the experiment (0).
export function annotate(
  key: Key, trial: number, change: AnnotationChange,
): Promise<{ message?: string }> {
  return sendJson("POST", `${pathOf(key)}${trial > 0 ? `/trials/${trial}` : ""}:annotate`, change);
}

export interface Parsed {
  valid: boolean;
  findings: Finding[];
  experiment: Experiment; // as far as it could be read
}

export function parse(text: string): Promise<Parsed> {
  return sendJson("POST", "api/v1/parse", text);
}

export function create(text: string): Promise<Experiment> {
  return sendJson("POST", "api/v1/experiments", text);
}

export interface Candidates {
  items: Candidate[];
  reason?: string;
}

export function suggestions(key: Key, count: number, abort?: AbortSignal): Promise<Candidates> {
  return getJson(`${pathOf(key)}/suggestions?count=${count}`, abort);
}

export function suggestFor(text: string, count: number): Promise<Candidates> {
  return sendJson("POST", `api/v1/suggest?count=${count}`, text);
}

export function getTrial(key: Key, trial: number, abort?: AbortSignal): Promise<Trial> {
  return getJson(`${pathOf(key)}/trials/${trial}`, abort);
}

async function all<T>(path: string, abort?: AbortSignal): Promise<T[]> {
  const found: T[] = [];
  await pages<T>(`${path}?pageSize=10000`, (items) => found.push(...items), abort);
  return found;
}

// Of one trial, or of all (0).
export function listAttempts(key: Key, trial = 0, abort?: AbortSignal): Promise<Attempt[]> {
  return all(`${pathOf(key)}${trial > 0 ? `/trials/${trial}` : ""}/attempts`, abort);
}

export function listEvents(key: Key, trial = 0, abort?: AbortSignal): Promise<Event[]> {
  return all(`${pathOf(key)}${trial > 0 ? `/trials/${trial}` : ""}/events`, abort);
}

export function listCheckpoints(key: Key, trial: number, abort?: AbortSignal) {
  return all<Checkpoint>(`${pathOf(key)}/trials/${trial}/checkpoints`, abort);
}

export interface Variant {
  name: string;
  aliases?: string[];
  help: string;
  settings: { name: string; help: string; default: string }[];
}

export async function listAlgorithms(): Promise<Variant[]> {
  return (await getJson<{ items: Variant[] }>("api/v1/algorithms")).items;
}

export async function listStoppers(): Promise<Variant[]> {
  return (await getJson<{ items: Variant[] }>("api/v1/stoppers")).items;
}

// ---- rights ------------------------------------------------------------------------------------

const known = signal<Record<string, Rights>>({});
const NONE: Omit<Rights, "name" | "namespace"> = {
  read: false, create: false, change: false, delete: false,
};

// The one that a user of one namespace has; for others the server's own.
export const homeNamespace = signal("default");

export function forgetRights(): void {
  known.value = {};
}

// What the user may do there. Nothing until the server has said so: no button is shown that would
// be refused.
export function rightsIn(ns: string): Rights {
  return known.value[ns] ?? { name: "", namespace: ns, ...NONE };
}

export async function loadRights(ns: string): Promise<Rights> {
  const asked = ns === "" ? "" : `?namespace=${encodeURIComponent(ns)}`;
  const rights = await getJson<Rights>(`api/v1/rights${asked}`);
  known.value = { ...known.peek(), [rights.namespace]: rights };
  if (ns === "") homeNamespace.value = rights.namespace;
  return rights;
}
