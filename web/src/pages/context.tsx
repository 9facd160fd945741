// What the tabs of an experiment share: the record, its trials, one filter and one selection, all
// of them kept in the address.
import { createContext } from "preact";
import { useContext, useMemo } from "preact/hooks";
import type { Key } from "../api/experiments.js";
import type { TrialData } from "../api/trials.js";
import type { Experiment } from "../api/records.js";
import type { Brush } from "../brush.js";
import { meets, parseBrush, printBrush, termsOf } from "../brush.js";
import type { Field } from "../filter.js";
import { FilterError, chooser, withoutField } from "../filter.js";
import { count, plural, shellWord } from "../format.js";
import { nameOf } from "../ui/trial_columns.js";
import { param, setParams, place } from "../url.js";

export interface Shared {
  key: Key;
  experiment: Experiment;
  data: TrialData | null;
  rows: Uint32Array; // of the trials that the filter leaves
  problem: string; // with the filter
  selected: Set<number>; // numbers of trials
  again: () => void;
}

export const SharedContext = createContext<Shared | null>(null);

export function useShared(): Shared {
  return useContext(SharedContext)!;
}

export function fieldsOf({ table, experiment }: TrialData): Field[] {
  return table.columns
    .map((one) => ({
      name: one.name,
      also: [nameOf(one.name, experiment)],
      text: one.kind === "category" && !one.name.startsWith("param."),
      at: (row: number) => one.at(row),
    }));
}

// What was chosen along axes and cannot be said in the filter.
export function brushes(): Brush[] {
  return place.value.params.getAll("brush").flatMap((one) => parseBrush(one) ?? []);
}

export function isFiltered(): boolean {
  return param("filter") !== "" || brushes().length > 0;
}

export function showAll(): void {
  setParams({ filter: "", brush: "" });
}

function chosenBy(data: TrialData, filter: string, chosen: Brush[]): (row: number) => boolean {
  const tests = filter === "" ? [] : [chooser(filter, fieldsOf(data))];
  for (const brush of chosen) {
    const column = data.table.column(brush.column);
    if (!column) throw new FilterError(`there is no field "${brush.column}"`);
    tests.push(meets(brush, column));
  }
  return (row) => tests.every((test) => test(row));
}

export function useChosen(data: TrialData | null): { rows: Uint32Array; problem: string } {
  const filter = param("filter");
  const chosen = brushes();
  const version = data?.version ?? 0;
  return useMemo(() => {
    const rows = data?.table.rows ?? 0;
    const every = Uint32Array.from({ length: rows }, (_, i) => i);
    const all = data === null || (filter === "" && chosen.length === 0);
    if (all) return { rows: every, problem: "" };
    try {
      return { rows: every.filter(chosenBy(data, filter, chosen)), problem: "" };
    } catch (error) {
      if (!(error instanceof FilterError)) throw error;
      return { rows: every, problem: error.message };
    }
  }, [data, version, filter, chosen.map(printBrush).join()]);
}

// Chooses along an axis, in place of what was chosen there; null takes it back, and so does the
// same again where `toggles`.
export function chooseAlong(
  data: TrialData, name: string, brush: Brush | null, toggles = false,
): void {
  const now = { filter: param("filter"), brush: brushes().map(printBrush) };
  const others = brushes().filter((one) => one.column !== name).map(printBrush);
  const filter = withoutField(now.filter, name, fieldsOf(data));
  const { table } = data;
  const terms = brush && filter !== null ? termsOf(brush, table.column(name)!, table.rows) : null;
  const next = {
    filter: [filter ?? now.filter, ...(terms ?? [])].filter((one) => one !== "").join(","),
    brush: brush && terms === null ? [...others, printBrush(brush)] : others,
  };
  const same = next.filter === now.filter && next.brush.join() === now.brush.join();
  if (same && toggles && brush) chooseAlong(data, name, null);
  else setParams(next);
}

export function selectedTrials(): Set<number> {
  const text = place.value.params.get("sel") ?? "";
  return new Set(text.split(/[ ,.]+/).filter((one) => one !== "").map(Number));
}

export function toggleTrial(trial: number): void {
  const selected = selectedTrials();
  if (!selected.delete(trial)) selected.add(trial);
  setParams({ sel: [...selected].join(".") });
}

export function selectTrials(trials: Iterable<number>): void {
  setParams({ sel: [...trials].join(".") });
}

// "42 of 100,000 trials shown", or nothing where all are.
export function shownOf(rows: number, data: TrialData | null): string {
  const all = data?.table.rows ?? 0;
  return rows < all ? `${count(rows)} of ${plural(all, "trial")} shown` : plural(all, "trial");
}

export function namespaceFlag(key: Key): string {
  return key.ns === "default" ? "" : ` -n ${shellWord(key.ns)}`;
}

// The command that draws the same of all trials, which is what it can.
export function plotCommand(key: Key, kind: string, ...words: string[]): string {
  const given = words.map((one) => ` ${shellWord(one)}`).join("");
  return `shirabe plot ${shellWord(key.name)}${namespaceFlag(key)} ${kind}${given} -o ${kind}.svg`;
}

export function plotNote(): string {
  return isFiltered() ? "The command draws all trials: it takes no filter." : "";
}
