// Fills the columns of an experiment's trials from the server, and keeps them current: by columns,
// and by what has changed since a revision.
import { signal } from "@preact/signals";
import type { Arrays, Head } from "./binary.js";
import { putColumns, readArrays } from "./binary.js";
import { TrialColumns } from "./columns.js";
import type { Key } from "./experiments.js";
import { idOf, pathOf } from "./experiments.js";
import { ApiError, ask } from "./http.js";
import type { Experiment } from "./records.js";
import { neededColumns, putBreaks } from "../objectives.js";

export interface TrialData {
  experiment: Experiment;
  table: TrialColumns;
  version: number; // grows with every change
}

// What the panels read always, and what a table may show besides, loaded when it is asked for.
const BASE = ["trial", "state", "objective", "start", "end", "cost", "attempts", "preemptions",
  "lastStep", "infeasible", "feasible"];
export const EXTRA = ["step", "seconds", "attemptSeconds", "failures", "wastedSeconds",
  "wastedCost", "onDemandCost", "created", "reason", "infeasible", "parent"];

// A name with a comma or a quote stands in quotes, as in a line of CSV.
export function fieldList(names: string[]): string {
  return names
    .map((name) => (/[",]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name))
    .join(",");
}

function additionalMetrics(experiment: Experiment): string[] {
  return experiment.spec.objective.additionalMetricNames ?? [];
}

export function emptyTable(experiment: Experiment): TrialColumns {
  const table = new TrialColumns();
  table.needed = neededColumns(experiment);
  table.add("trial", "number");
  table.add("state", "category");
  table.add("objective", "number");
  for (const parameter of experiment.spec.parameters ?? []) {
    const category = parameter.parameterType === "categorical";
    const column = table.add(`param.${parameter.name}`, category ? "category" : "number");
    if (category) for (const word of parameter.feasibleSpace.list ?? []) column.code(word);
  }
  return table;
}

// One experiment's trials, shared by all panels that are open.
export class TrialStore {
  readonly data = signal<TrialData | null>(null);
  readonly problem = signal("");
  private abort = new AbortController();
  private extra: string[] = [];
  private created: string | undefined;
  private running: Promise<void> | null = null;

  constructor(readonly key: Key) {}

  // All of it.
  async load(experiment: Experiment): Promise<void> {
    this.abort.abort();
    this.abort = new AbortController();
    this.created = undefined;
    const table = emptyTable(experiment);
    await this.read(experiment, table, 0);
  }

  // What has changed since the last time.
  async refresh(experiment: Experiment): Promise<void> {
    if (this.running !== null) {
      await this.running.catch(() => undefined);
    }
    const data = this.data.peek();
    if (data === null) return this.load(experiment);
    try {
      await this.read(experiment, data.table, data.table.revision);
    } catch (error) {
      // 410: another store than before.
      if (error instanceof ApiError && error.status === 410) return this.load(experiment);
      throw error;
    }
  }

  // Columns that are not there yet; they come when they come.
  want(names: string[]): void {
    const data = this.data.peek();
    const missing = names.filter(
      (name) => EXTRA.includes(name) && !this.extra.includes(name) && !data?.table.column(name),
    );
    if (missing.length === 0 || data === null) return;
    this.extra.push(...missing);
    this.read(data.experiment, data.table, 0, ["trial", ...missing]).catch(() => undefined);
  }

  private read(
    experiment: Experiment, table: TrialColumns, since: number, fields?: string[],
  ): Promise<void> {
    const reading = this.readPages(experiment, table, since, fields).then(
      () => void (this.problem.value = ""),
      (error: Error) => {
        if (!this.abort.signal.aborted) this.problem.value = error.message;
        throw error;
      },
    );
    this.running = reading;
    return reading.finally(() => {
      if (this.running === reading) this.running = null;
    });
  }

  private async readPages(
    experiment: Experiment, table: TrialColumns, since: number, fields?: string[],
  ): Promise<void> {
    const abort = this.abort.signal;
    const names = fields ?? [
      ...BASE,
      ...additionalMetrics(experiment).map((one) => `metric.${one}`),
      ...(experiment.spec.parameters ?? []).map((one) => `param.${one.name}`),
      ...this.extra,
    ];
    const query = new URLSearchParams({ fields: fieldList(names) });
    if (since > 0) query.set("since", String(since));
    let revision = 0;
    for (let next: string | undefined = ""; next !== undefined; ) {
      if (next !== "") query.set("pageToken", next);
      const response = await ask(`${pathOf(this.key)}/columns?${query}`, { abort });
      const reply: Arrays<Head> = readArrays<Head>(await response.arrayBuffer());
      if (abort.aborted) return;
      const { head } = reply;
      if (since > 0 && this.created !== undefined && head.created !== this.created) {
        return this.load(experiment); // deleted, and made again
      }
      this.created = head.created;
      if (revision === 0) revision = head.revision;
      putColumns(table, reply);
      next = head.nextPageToken;
      if (fields === undefined) table.revision = revision;
      this.publish(experiment, table);
    }
  }

  private publish(experiment: Experiment, table: TrialColumns): void {
    putBreaks(table, experiment);
    const version = (this.data.peek()?.version ?? 0) + 1;
    this.data.value = { experiment, table, version };
  }

  close(): void {
    this.abort.abort();
  }
}

let current: TrialStore | null = null;

export function trialsOf(key: Key): TrialStore {
  if (current === null || idOf(current.key) !== idOf(key)) {
    current?.close();
    current = new TrialStore(key);
  }
  return current;
}
