// Columns of trials as columns of a grid: names, texts, order; and the two that every such grid
// begins with.
import type { Column as Values, TrialColumns } from "../api/columns.js";
import type { Key } from "../api/experiments.js";
import type { Experiment } from "../api/records.js";
import { compare } from "../filter.js";
import { clock, known, money, short, word } from "../format.js";
import { brokenWords, constraintsOf, objectivesOf } from "../objectives.js";
import { toggleTrial } from "../pages/context.js";
import { currencyOf } from "../state.js";
import { link } from "../url.js";
import type { Column } from "./grid.js";
import { State } from "./state.js";

const NAMES: Record<string, string> = {
  trial: "Trial", state: "State", objective: "Objective", step: "Step", lastStep: "Last step",
  attempts: "Attempts", failures: "Failures", preemptions: "Preempted", seconds: "Took",
  attemptSeconds: "Ran", cost: "Cost", wastedSeconds: "Lost time", wastedCost: "Lost cost",
  onDemandCost: "On demand", created: "Created", start: "Started", end: "Ended",
  reason: "Reason", infeasible: "Infeasible", parent: "Parent", breaks: "Breaks",
};

export function nameOf(column: string, experiment: Experiment): string {
  if (column === "objective") return experiment.spec.objective.objectiveMetricName;
  return NAMES[column] ?? column.replace(/^(param|metric)\./, "");
}

// What a grid shows: the trial of a row of the grid is at a row of the table.
export interface TrialRows {
  key: Key;
  table: TrialColumns;
  experiment: Experiment;
  at: (row: number) => number;
}

function text(column: Values, row: number, currency: string): string {
  const value = column.at(row);
  if (value === null) return "–";
  if (typeof value === "string") return word(value);
  if (column.kind === "time") return clock(value * 1000);
  if (/^[a-z]*seconds$/i.test(column.name)) return known(value);
  if (/^[a-z]*cost$/i.test(column.name)) return money(value, currency);
  return short(value);
}

// A column of the table; `id` is what sorts by it.
export function gridColumn(column: Values, rows: TrialRows): Column {
  const { table, experiment, at } = rows;
  const name = nameOf(column.name, experiment);
  const currency = currencyOf(experiment);
  const constraints = column.name === "breaks" ? constraintsOf(experiment) : [];
  const wide = column.name === "reason";
  const objectives = objectivesOf(experiment);
  const always = ["state", ...objectives.map((one) => one.column)];
  const minimized = objectives.some((one) => one.column === column.name && !one.maximize);
  const shownAt = (row: number) =>
    constraints.length > 0 && column.word(row) !== ""
      ? brokenWords(constraints, table, row) : text(column, row, currency);
  return {
    id: column.name,
    name,
    width: wide ? "18rem" : column.name === "state" ? "9rem"
      : column.name === "breaks" ? "minmax(9rem, 1.4fr)"
        : `minmax(${Math.min(14, Math.max(7, name.length * 0.62 + 2))}rem, 1fr)`,
    narrow: column.name === "state" ? "6.6rem" : "minmax(4.6rem, 1fr)",
    number: column.kind !== "category",
    sortable: true,
    ...(minimized ? { ascends: true } : {}), // the best first
    least: !always.includes(column.name),
    cell: (row) => {
      if (column.name === "state") return <State state={table.state(at(row))} />;
      const shown = shownAt(at(row));
      if (column.name === "breaks" && shown !== "–") {
        return <span class="broken" title={shown}>{shown}</span>;
      }
      return wide || column.kind === "category" ? <span title={shown}>{shown}</span> : shown;
    },
  };
}

// The box that selects a trial, and its number; one of them may be marked.
export function firstColumns(
  rows: TrialRows, selected: Set<number>, mark: { trial: number; word: string },
): Column[] {
  const { table, key, at } = rows;
  const trialAt = (row: number) => table.trial(at(row));
  return [
    {
      id: "select", name: "", label: "Select", width: "1.6rem",
      cell: (row) => (
        <input
          type="checkbox"
          aria-label={`Select trial ${trialAt(row)}`}
          checked={selected.has(trialAt(row))}
          onChange={() => toggleTrial(trialAt(row))}
        />
      ),
    },
    {
      id: "trial", name: "Trial", width: "6rem", narrow: "4.6rem", sortable: true,
      cell: (row) => (
        <>
          <a href={link(["t", key.ns, key.name, trialAt(row)])}>{trialAt(row)}</a>
          {trialAt(row) === mark.trial && <b class="best-mark"> ★ {mark.word}</b>}
        </>
      ),
    },
  ];
}

export function orderOf(table: TrialColumns, rows: Uint32Array, sort: string): Uint32Array {
  const descending = sort.startsWith("~");
  const column = table.column(sort.replace("~", ""));
  const sorted = rows.slice();
  if (!column || (column.name === "trial" && !descending)) return sorted;
  if (column.kind === "category") {
    return sorted.sort((a, b) => compare(column.at(a), column.at(b), descending));
  }
  const values = column.values;
  const sign = descending ? -1 : 1;
  return sorted.sort((a, b) => {
    const [va, vb] = [values[a]!, values[b]!];
    if (Number.isNaN(va)) return Number.isNaN(vb) ? a - b : 1;
    if (Number.isNaN(vb)) return -1;
    return sign * (va - vb) || a - b;
  });
}

export function cellOf(column: Values, row: number): string | number {
  const value = column.at(row);
  if (value === null) return "";
  return column.kind === "time" ? new Date((value as number) * 1000).toISOString() : value;
}
