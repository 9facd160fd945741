// All trials as a table: columns to choose, filter, order; what is shown as CSV or JSON lines.
import { useMemo } from "preact/hooks";
import type { Column as Values, TrialColumns } from "../api/columns.js";
import { varying } from "../api/columns.js";
import type { Experiment } from "../api/records.js";
import { EXTRA, trialsOf } from "../api/trials.js";
import { describe } from "../brush.js";
import { commandFilter, isCommandFilter, parseFilter } from "../filter.js";
import { count, shellWord } from "../format.js";
import { objectivesOf } from "../objectives.js";
import {
  brushes, fieldsOf, namespaceFlag, showAll, toggleTrial, useShared,
} from "../pages/context.js";
import { bestNumber } from "../state.js";
import { FilterBar } from "../ui/filterbar.js";
import { Grid } from "../ui/grid.js";
import { Menu } from "../ui/menu.js";
import { Command, Empty, csv, save } from "../ui/panel.js";
import { cellOf, firstColumns, gridColumn, nameOf, orderOf } from "../ui/trial_columns.js";
import { go, link, param, setParams } from "../url.js";

// What is optimised, the parameters that differ, and of the rest what is of interest in this
// experiment.
function defaultColumns(table: TrialColumns, rows: Uint32Array, experiment: Experiment): string[] {
  const parameters = table.columns.filter((one) => one.name.startsWith("param."));
  const shown = rows.length < 2 ? parameters : varying(parameters, rows);
  const own = experiment.spec.objective.objectiveMetricName;
  const objectives = objectivesOf(experiment).map((one) => one.column);
  const metrics = table.columns.filter((one) =>
    one.name.startsWith("metric.") && one.name !== `metric.${own}` &&
    !objectives.includes(one.name));
  const some = (name: string) => table.values(name).subarray(0, table.rows).some((v) => v > 0);
  return [
    "state", ...objectives, ...(table.column("breaks") ? ["breaks"] : []),
    ...shown.slice(0, 12).map((one) => one.name),
    ...metrics.slice(0, 4).map((one) => one.name), "lastStep",
    ...(some("preemptions") ? ["attempts", "preemptions"] : []),
    ...(some("cost") ? ["cost"] : []),
  ];
}

// The command line knows no column `breaks`.
function isOurs(filter: string): boolean {
  return !isCommandFilter(filter) || parseFilter(filter).some((one) => one.field === "breaks");
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
  const trialRows = { key, table, experiment, at };
  const columns = [
    ...firstColumns(trialRows, selected, { trial: bestNumber(experiment), word: "best" }),
    ...shown.map((column) => gridColumn(column, trialRows)),
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
  const written = problem === "" ? commandFilter(filter, fieldsOf(data)) : "";
  const command = `shirabe get trials ${key.name}${namespaceFlag(key)}` +
    (written !== "" && !isOurs(written) ? ` --filter ${shellWord(written)}` : "") +
    (["trial", "breaks", "~breaks"].includes(sort) ? "" : ` --sort-by ${shellWord(sort)}`);
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
              <button onClick={showAll}>
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
        {brushes().length > 0 && (
          <p class="hint">The command does not choose by {brushes().map(describe).join("; ")}.</p>
        )}
      </footer>
    </>
  );
}
