// Two objectives against each other: the front by shape and colour, joined by the line that parts
// what it is better than from what would be better; what breaks a constraint; and what runs or has
// no result in words. Axes have the real values, whichever way is better.
import type uPlot from "uplot";
import { useMemo } from "preact/hooks";
import { plural, shellWord } from "../format.js";
import type { Objective } from "../objectives.js";
import { brokenWords, constraintsOf } from "../objectives.js";
import type { Shared } from "../pages/context.js";
import { namespaceFlag, showAll, shownOf, useShared } from "../pages/context.js";
import type { Standings } from "../pareto.js";
import { Standing, frontOf, lossesOf } from "../pareto.js";
import { Chart, nearest } from "../ui/chart.js";
import { Empty, Panel } from "../ui/panel.js";
import { go, link, param, setParams } from "../url.js";
import type { Axes, Drawing } from "./pareto_draw.js";
import { countsOf, draw, missingWords, summaryOf, wordsOf } from "./pareto_draw.js";

export interface Scene {
  objectives: Objective[];
  standings: Standings;
  picked: number; // number of the trial that the weights pick; 0: none
}

function axesOf(objectives: Objective[]): Axes {
  const named = (name: string) => objectives.find((one) => one.metric === param(name));
  const x = named("x") ?? objectives.find((one) => one !== named("y"))!;
  const y = named("y") ?? objectives.find((one) => one !== x)!;
  return { x, y: y === x ? objectives.find((one) => one !== x)! : y };
}

function setAxis(axes: Axes, name: "x" | "y", metric: string): void {
  const other = name === "x" ? "y" : "x";
  const swap = axes[other].metric === metric;
  setParams({ [name]: metric, [other]: swap ? axes[name].metric : axes[other].metric });
}

// The least and the greatest, with room around them.
function rangeOf(values: Float64Array, rows: Uint32Array, log: boolean): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const row of rows) {
    low = Math.min(low, values[row]!);
    high = Math.max(high, values[row]!);
  }
  if (low > high) return log ? [1, 10] : [0, 1];
  if (log) {
    const factor = (high / low) ** 0.05 * 1.02;
    return [low / factor, high * factor];
  }
  const room = high > low ? (high - low) * 0.05 : Math.abs(low) * 0.1 || 1;
  return [low - room, high + room];
}

function isPositive(values: Float64Array, rows: Uint32Array): boolean {
  return rows.length > 0 && rows.every((row) => values[row]! > 0);
}

function Legend(props: { constrained: boolean; many: boolean; picked: boolean }) {
  return (
    <div class="legend">
      <span>
        <svg width="14" height="14" aria-hidden="true">
          <path d="M7 1l6 6l-6 6l-6-6z" fill="var(--best)" />
        </svg>
        on the front
      </span>
      <span>
        <svg width="20" height="12" aria-hidden="true">
          <path d="M0 3h8v6h12" fill="none" stroke="var(--best)" stroke-width="2" />
        </svg>
        {props.many ? "front of these two alone" : "line of the front"}
      </span>
      <span>
        <svg width="12" height="12" aria-hidden="true">
          <circle cx="6" cy="6" r="4" fill="var(--accent)" />
        </svg>
        another is better
      </span>
      {props.constrained && (
        <span>
          <svg width="12" height="12" aria-hidden="true">
            <path d="M6 2l4.5 8h-9z" fill="none" stroke="var(--bad)" stroke-width="1.6" />
          </svg>
          breaks a constraint
        </span>
      )}
      {props.picked && (
        <span>
          <svg width="14" height="14" aria-hidden="true">
            <circle cx="7" cy="7" r="6" fill="none" stroke="var(--ink)" stroke-width="1.6" />
          </svg>
          best by weights
        </span>
      )}
    </div>
  );
}

function Controls(props: { axes: Axes; objectives: Objective[]; constrained: boolean;
  logs: { x: boolean; y: boolean } }) {
  const { axes, objectives, logs } = props;
  const box = (name: string, label: string, value = "1") => (
    <label>
      <input
        type="checkbox"
        checked={param(name) === value}
        onChange={(event) => setParams({ [name]: event.currentTarget.checked ? value : "" })}
      />
      {label}
    </label>
  );
  return (
    <>
      {objectives.length > 2 && (["x", "y"] as const).map((name) => (
        <label key={name}>
          {name === "x" ? "Across" : "Up"}
          <select
            value={axes[name].metric}
            onChange={(event) => setAxis(axes, name, event.currentTarget.value)}
          >
            {objectives.map((one) => (
              <option key={one.metric}>{one.metric}</option>
            ))}
          </select>
        </label>
      ))}
      {logs.x && box("xlog", "logarithmic across")}
      {logs.y && box("ylog", "logarithmic up")}
      {props.constrained && box("broken", "hide those that break a constraint", "hide")}
    </>
  );
}

function Nothing(props: { shared: Shared; objectives: Objective[] }) {
  const { shared: { data, rows }, objectives } = props;
  if (data!.table.rows === 0) {
    return (
      <Empty title="No trials yet">
        <p>The first appears here as soon as it has ended with a result.</p>
      </Empty>
    );
  }
  if (rows.length === 0) {
    return (
      <Empty title="No trial meets this filter">
        <button onClick={showAll}>Show all</button>
      </Empty>
    );
  }
  return (
    <Empty title="No result to show">
      <p>
        A trial has one once it has ended and has reported{" "}
        {objectives.map((one) => one.metric).join(", ")}, and the metrics of all constraints.
      </p>
    </Empty>
  );
}

// ---- the panel ----------------------------------------------------------------------------------

function axisName({ metric, maximize }: Objective): string {
  return `${metric} (${maximize ? "higher" : "lower"} is better)`;
}

// Rows with a result that the filter leaves, but for those that are hidden.
function useDrawing(shared: Shared, scene: Scene): Drawing {
  const { data, rows, selected } = shared;
  const { objectives, standings, picked } = scene;
  const { table } = data!;
  const axes = axesOf(objectives);
  const hidden = param("broken") === "hide";
  const names = `${axes.x.metric}\n${axes.y.metric}`;
  const [shown, line] = useMemo(() => {
    const least = hidden ? Standing.Kept : Standing.Broken;
    const kept = Uint32Array.from({ length: table.rows }, (_, row) => row)
      .filter((row) => standings.of[row]! >= Standing.Kept);
    return [
      rows.filter((row) => standings.of[row]! >= least),
      frontOf(lossesOf(table, [axes.x, axes.y]), kept),
    ] as const;
  }, [standings, rows, hidden, names]);
  return { table, rows: shown, line, axes, standings, selected, picked };
}

export function ParetoChart(props: { scene: Scene; class?: string }) {
  const shared = useShared();
  const { key, experiment, data, rows, selected } = shared;
  const { objectives, standings, picked } = props.scene;
  const drawing = useDrawing(shared, props.scene);
  const { table, axes } = drawing;
  const constraints = constraintsOf(experiment);
  const [xs, ys] = [table.values(axes.x.column), table.values(axes.y.column)];
  const logs = { x: isPositive(xs, drawing.rows), y: isPositive(ys, drawing.rows) };
  const log = { x: logs.x && param("xlog") === "1", y: logs.y && param("ylog") === "1" };
  // The marks are drawn by the hook: new data makes it run, and has the ranges.
  const series = useMemo(
    () => [rangeOf(xs, drawing.rows, log.x), rangeOf(ys, drawing.rows, log.y)] as uPlot.AlignedData,
    [standings, drawing.rows, drawing.line, log.x, log.y, [...selected].join(), picked],
  );
  const latest = useMemo(() => ({ draw: (_u: uPlot) => {}, y: [0, 1] as [number, number] }), []);
  latest.draw = (u) => draw(u, drawing);
  latest.y = series[1] as [number, number];
  const options = () => ({
    cursor: { drag: { x: true, y: true, uni: 30 } },
    scales: {
      x: { time: false, range: (_u: uPlot, a: number, b: number): [number, number] => [a, b],
        ...(log.x ? { distr: 3 as const } : {}) },
      y: { range: () => latest.y, ...(log.y ? { distr: 3 as const } : {}) },
    },
    series: [{}, { paths: () => null, points: { show: false } }],
    hooks: { draw: [(u: uPlot) => latest.draw(u)] },
  });
  const at = (u: uPlot, left: number, top: number) => {
    const row = nearest(u, { left, top }, { x: xs, y: ys, rows: drawing.rows });
    if (row < 0) return null;
    return {
      text: wordsOf(drawing, row, constraints),
      open: () => go(link(["t", key.ns, key.name, table.trial(row)])),
    };
  };
  const counts = countsOf(standings, rows);
  const summary = summaryOf(drawing, counts);
  const missing = missingWords(counts);
  const tableOf = () => ({
    columns: ["trial", "on the front", ...objectives.map((one) => one.metric),
      ...(constraints.length > 0 ? ["breaks"] : [])],
    rows: Array.from(drawing.rows, (row) => [
      table.trial(row), standings.of[row] === Standing.Front ? "yes" : "no",
      ...objectives.map((one) => table.values(one.column)[row]!),
      ...(constraints.length > 0 ? [brokenWords(constraints, table, row)] : []),
    ]),
  });
  return (
    <Panel
      title={`${axes.y.metric} against ${axes.x.metric}`}
      class={props.class ?? ""}
      shown={shownOf(rows.length, data)}
      summary={summary}
      command={`shirabe best ${shellWord(key.name)}${namespaceFlag(key)}`}
      table={drawing.rows.length > 0 ? tableOf : undefined}
      image
      tools={
        <Controls
          axes={axes}
          objectives={objectives}
          constrained={constraints.length > 0}
          logs={logs}
        />
      }
    >
      {drawing.rows.length === 0 ? <Nothing shared={shared} objectives={objectives} /> : (
        <>
          <Chart
            data={series}
            options={options}
            form={`pareto ${log.x} ${log.y} ${axisName(axes.x)} ${axisName(axes.y)}`}
            label={summary}
            x={axisName(axes.x)}
            y={axisName(axes.y)}
            at={at}
            height={420}
          />
          <Legend
            constrained={constraints.length > 0}
            many={objectives.length > 2}
            picked={picked > 0}
          />
        </>
      )}
      {counts[Standing.Broken] > 0 && (
        <p class="hint">
          {plural(counts[Standing.Broken], "trial")}{" "}
          {counts[Standing.Broken] === 1 ? "breaks" : "break"} a constraint
          {param("broken") === "hide" && (counts[Standing.Broken] === 1 ? ", and is hidden"
            : ", and are hidden")}.
        </p>
      )}
      {missing !== "" && <p class="hint">{missing}</p>}
    </Panel>
  );
}
