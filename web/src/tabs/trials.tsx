// All trials as a table: columns to choose, filter, order; what is shown as CSV or JSON lines.
import { useMemo } from "preact/hooks";
import type { Column as Values, TrialColumns } from "../api/columns.js";
import { varying } from "../api/columns.js";
import type { Experiment } from "../api/records.js";
import { EXTRA, trialsOf } from "../api/trials.js";
import { compare, isCommandFilter } from "../filter.js";
import { clock, count, duration, money, shellWord, short } from "../format.js";
import { namespaceFlag, toggleTrial, useShared } from "../pages/context.js";
import { bestNumber, currencyOf } from "../state.js";
import { FilterBar } from "../ui/filterbar.js";
import type { Column } from "../ui/grid.js";
import { Grid } from "../ui/grid.js";
import { Menu } from "../ui/menu.js";
import { Command, Empty, csv, save } from "../ui/panel.js";
import { State } from "../ui/state.js";
import { go, link, param, setParams } from "../url.js";

const NAMES: Record<string, string> = {
  trial: "Trial", state: "State", objective: "Objective", step: "Step", lastStep: "Last step",
  attempts: "Attempts", failures: "Failures", preemptions: "Preempted", seconds: "Took",
  attemptSeconds: "Ran", cost: "Cost", wastedSeconds: "Lost time", wastedCost: "Lost cost",
  onDemandCost: "On demand", created: "Created", start: "Started", end: "Ended",
  reason: "Reason", infeasible: "Infeasible", parent: "Parent",
};

export function nameOf(column: string, experiment: Experiment): string {
  if (column === "objective") return experiment.spec.objective.objectiveMetricName;
  return NAMES[column] ?? column.replace(/^(param|metric)\./, "");
}

// The parameters that differ, and of the rest what is of interest in this experiment.
function defaultColumns(table: TrialColumns, rows: Uint32Array, experiment: Experiment): string[] {
  const parameters = table.columns.filter((one) => one.name.startsWith("param."));
  const shown = rows.length < 2 ? parameters : varying(parameters, rows);
  const own = experiment.spec.objective.objectiveMetricName;
  const metrics = table.columns.filter(
    (one) => one.name.startsWith("metric.") && one.name !== `metric.${own}`,
  );
  const some = (name: string) => table.values(name).subarray(0, table.rows).some((v) => v > 0);
  return [
    "state", "objective", ...shown.slice(0, 12).map((one) => one.name),
    ...metrics.slice(0, 4).map((one) => one.name), "lastStep",
    ...(some("preemptions") ? ["attempts", "preemptions"] : []),
    ...(some("cost") ? ["cost"] : []),
  ];
}

function text(column: Values, row: number, currency: string): string {
  const value = column.at(row);
  if (value === null) return "–";
  if (typeof value === "string") return value;
  if (column.kind === "time") return clock(value * 1000);
  if (/seconds$/i.test(column.name)) return duration(value);
  if (/cost$/i.test(column.name)) return money(value, currency);
  return short(value);
}

function gridColumn(column: Values, at: (row: number) => number, experiment: Experiment): Column {
  const name = nameOf(column.name, experiment);
  const currency = currencyOf(experiment);
  const wide = column.name === "reason";
  return {
    id: column.name,
    name,
    width: wide ? "18rem" : column.name === "state" ? "9rem"
      : `minmax(${Math.min(14, Math.max(7, name.length * 0.62 + 2))}rem, 1fr)`,
    number: column.kind !== "category",
    sortable: true,
    least: !["state", "objective"].includes(column.name),
    cell: (row) => {
      if (column.name === "state") return <State state={column.word(at(row))} />;
      const shown = text(column, at(row), currency);
      return wide || column.kind === "category" ? <span title={shown}>{shown}</span> : shown;
    },
  };
}

function orderOf(table: TrialColumns, rows: Uint32Array, sort: string): Uint32Array {
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

function cellOf(column: Values, row: number): string | number {
  const value = column.at(row);
  if (value === null) return "";
  return column.kind === "time" ? new Date((value as number) * 1000).toISOString() : value;
}

function jsonLines(table: TrialColumns, columns: Values[], rows: Uint32Array): string {
  return Array.from(rows, (row) => {
    const record: Record<string, unknown> = { trial: table.trial(row) };
    for (const column of columns) record[column.name] = cellOf(column, row);
    return JSON.stringify(record) + "\n";
  }).join("");
}

export default function Trials() {
  const { key, experiment, data, rows, selected, problem } = useShared();
  const sort = param("sort") || "trial";
  const filter = param("filter");
  const table = data?.table;
  const version = data?.version ?? 0;
  const order = useMemo(
    () => (table ? orderOf(table, rows, sort) : new Uint32Array()), [table, version, rows, sort],
  );
  if (!data || !table) return <div aria-busy="true" class="grid" />;
  const asked = param("columns");
  const names = asked === "" ? defaultColumns(table, rows, experiment) : asked.split(",");
  trialsOf(key).want(names);
  const shown = names.flatMap((name) => table.column(name) ?? []);
  const at = (row: number) => order[row]!;
  const best = bestNumber(experiment);
  const columns: Column[] = [
    {
      id: "select", name: "", label: "Select", width: "1.6rem",
      cell: (row) => (
        <input
          type="checkbox"
          aria-label={`Select trial ${table.trial(at(row))}`}
          checked={selected.has(table.trial(at(row)))}
          onChange={() => toggleTrial(table.trial(at(row)))}
        />
      ),
    },
    {
      id: "trial", name: "Trial", width: "6rem", sortable: true,
      cell: (row) => {
        const trial = table.trial(at(row));
        return (
          <>
            <a href={link(["t", key.ns, key.name, trial])}>{trial}</a>
            {trial === best && <b class="best-mark"> ★ best</b>}
          </>
        );
      },
    },
    ...shown.map((column) => gridColumn(column, at, experiment)),
  ];
  const choices = [...new Set([...table.columns.map((one) => one.name), ...EXTRA])]
    .filter((name) => name !== "trial");
  const toggle = (name: string) => {
    const next = names.includes(name) ? names.filter((one) => one !== name) : [...names, name];
    setParams({ columns: next.join(",") });
  };
  const tableOf = () => ({
    columns: ["trial", ...shown.map((one) => one.name)],
    rows: Array.from(order, (row) => [
      table.trial(row), ...shown.map((column) => cellOf(column, row)),
    ]),
  });
  const command = `shirabe get trials ${key.name}${namespaceFlag(key)}` +
    (filter !== "" && problem === "" && isCommandFilter(filter)
      ? ` --filter ${shellWord(filter)}` : "") +
    (sort === "trial" ? "" : ` --sort-by ${shellWord(sort)}`);
  return (
    <>
      <FilterBar>
        <Menu
          label="Columns"
          class=""
          keepOpen
          items={choices.map((name) => ({
            name: nameOf(name, experiment) + (name.startsWith("metric.") ? " (metric)" : ""),
            checked: names.includes(name),
            act: () => toggle(name),
          }))}
        >
          Columns ▾
        </Menu>
        <Menu
          label="Download"
          class=""
          items={[
            { name: "CSV of what is shown", act: () => save(`${key.name}.csv`, csv(tableOf())) },
            {
              name: "JSON lines of what is shown",
              act: () => save(`${key.name}.jsonl`, jsonLines(table, shown, order),
                "application/x-ndjson"),
            },
          ]}
        >
          Download ▾
        </Menu>
      </FilterBar>
      <Grid
        label="Trials"
        rows={order.length}
        columns={columns}
        sort={sort}
        onSort={(next) => setParams({ sort: next })}
        onOpen={(row) => go(link(["t", key.ns, key.name, table.trial(at(row))]))}
        isSelected={(row) => selected.has(table.trial(at(row)))}
        onSelect={(row) => toggleTrial(table.trial(at(row)))}
        empty={
          table.rows > 0 ? (
            <Empty title="No trial meets this filter">
              <button onClick={() => setParams({ filter: "" })}>
                Show all {count(table.rows)}
              </button>
            </Empty>
          ) : (
            <Empty title="No trials yet" />
          )
        }
      />
      <footer class="page-foot">
        <Command text={command} />
      </footer>
    </>
  );
}
