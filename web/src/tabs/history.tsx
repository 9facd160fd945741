// The objective of each trial and the best so far, as trials end. Marks differ by shape and colour.
import uPlot from "uplot";
import { useMemo } from "preact/hooks";
import type { TrialColumns } from "../api/columns.js";
import { ENDED_STATES, bestSoFar } from "../api/columns.js";
import { plural, short } from "../format.js";
import { brokenWords, constraintsOf } from "../objectives.js";
import { plotCommand, plotNote, shownOf, useShared } from "../pages/context.js";
import { bestNumber, bestOf, isEnded, lookOf, maximizes } from "../state.js";
import { colour } from "../theme.js";
import type { Mark } from "../ui/chart.js";
import { Chart, drawMark, nearest } from "../ui/chart.js";
import { Empty, Panel } from "../ui/panel.js";
import { go, link, param, setParams } from "../url.js";

const MARKS: Record<string, [Mark, string]> = {
  Succeeded: ["dot", "accent"],
  EarlyStopped: ["half", "early"],
  Running: ["ring", "run"],
};
const BROKEN: [Mark, string] = ["triangle", "bad"]; // ended, and does not keep all constraints

function markOf(state: string): [Mark, string] {
  const ended = ENDED_STATES.has(state) || state === "Infeasible";
  return MARKS[state] ?? (ended ? ["cross", "bad"] : ["ring", "run"]);
}

// The objective of each row, NaN where it is no result: a trial that failed at its lowest loss has
// not been a good one.
function results(table: TrialColumns): Float64Array {
  const values = table.values("objective").slice(0, table.rows);
  for (let row = 0; row < table.rows; ++row) {
    const counts = Number.isFinite(values[row]!) && markOf(table.state(row))[0] !== "cross";
    if (!counts) values[row] = NaN;
  }
  return values;
}

// Where marks of trials without a result stand: at the edge of the worst.
function edgeOf(u: uPlot, maximize: boolean): number {
  const gap = 5 * devicePixelRatio;
  return maximize ? u.bbox.top + u.bbox.height - gap : u.bbox.top + gap;
}

// So many marks would hide each other: smaller ones, as squares, cost a hundredth.
const MANY = 4000;

interface Drawn {
  table: TrialColumns;
  rows: Uint32Array;
  values: Float64Array; // results(table)
  maximize: boolean;
  selected: Set<number>;
}

function drawTrials(u: uPlot, drawn: Drawn) {
  const { table, rows, values: y, selected } = drawn;
  const x = table.values("trial");
  const state = table.column("state")!;
  const context = u.ctx;
  const scale = devicePixelRatio;
  const box = u.bbox;
  const edge = edgeOf(u, drawn.maximize);
  context.save();
  context.beginPath();
  context.rect(box.left, box.top, box.width, box.height);
  context.clip();
  context.lineWidth = 1.6 * scale;
  const look = ([mark, name]: [Mark, string]) => ({ mark, tint: colour(name) });
  const looks = state.dictionary.map(markOf).map(look);
  const infeasible = table.values("infeasible");
  const infeasibleLook = look(markOf("Infeasible"));
  const broken = table.column("breaks")?.values;
  const brokenLook = look(BROKEN);
  const size = (rows.length > MANY ? 1.2 : rows.length > 400 ? 2.6 : 3.6) * scale;
  for (const row of rows) {
    const own = infeasible[row] === 1 ? infeasibleLook : looks[state.values[row]!];
    if (!own) continue;
    const breaks = broken !== undefined && !Number.isNaN(broken[row]!) && own.mark !== "ring";
    const look = breaks && own.mark !== "cross" ? brokenLook : own;
    const value = y[row]!;
    const left = u.valToPos(x[row]!, "x", true);
    // A trial without a result stands at the edge of the picture: it is not left out.
    const none = !Number.isFinite(value);
    if (none && look.mark !== "cross") continue;
    const top = none ? edge : u.valToPos(value, "y", true);
    context.fillStyle = context.strokeStyle = look.tint;
    if (rows.length > MANY) context.fillRect(left - size, top - size, 2 * size, 2 * size);
    else drawMark(context, look.mark, { x: left, y: top, size });
    if (!selected.has(x[row]!)) continue;
    context.strokeStyle = colour("best");
    context.beginPath();
    context.arc(left, top, size + 3 * scale, 0, 2 * Math.PI);
    context.stroke();
  }
  context.restore();
}

function Legend(props: { log: boolean; canLog: boolean; constrained: boolean }) {
  return (
    <div class="legend">
      <span>
        <svg width="12" height="12" aria-hidden="true">
          <circle cx="6" cy="6" r="4" fill="var(--accent)" />
        </svg>
        succeeded
      </span>
      <span>
        <svg width="12" height="12" aria-hidden="true">
          <rect x="2" y="2" width="8" height="8" fill="var(--early)" />
        </svg>
        stopped early
      </span>
      {props.constrained && (
        <span>
          <svg width="12" height="12" aria-hidden="true">
            <path d="M6 2l4.5 8h-9z" fill="none" stroke="var(--bad)" stroke-width="1.6" />
          </svg>
          breaks a constraint
        </span>
      )}
      <span>
        <svg width="12" height="12" aria-hidden="true">
          <path d="M2 2l8 8m0-8l-8 8" stroke="var(--bad)" stroke-width="2" />
        </svg>
        no result
      </span>
      <span>
        <svg width="12" height="12" aria-hidden="true">
          <circle cx="6" cy="6" r="3.5" fill="none" stroke="var(--run)" stroke-width="2" />
        </svg>
        running
      </span>
      <span>
        <svg width="20" height="12" aria-hidden="true">
          <path d="M0 9h8V4h12" fill="none" stroke="var(--best)" stroke-width="2" />
        </svg>
        best so far
      </span>
      {props.canLog && (
        <label>
          <input
            type="checkbox"
            checked={props.log}
            onChange={(event) => setParams({ ylog: event.currentTarget.checked ? "1" : "" })}
          />
          logarithmic
        </label>
      )}
    </div>
  );
}

export function History(props: { class?: string }) {
  const { key, experiment, data, rows, selected } = useShared();
  const version = data?.version ?? 0;
  const table = data?.table;
  const maximize = maximizes(experiment);
  const { series, positive, y } = useMemo(() => {
    const n = table?.rows ?? 0;
    const y = table ? results(table) : new Float64Array();
    let least = Infinity;
    for (const value of y) if (Number.isFinite(value)) least = Math.min(least, value);
    const best = table ? bestSoFar(table, maximize) : new Float64Array();
    const clean = Array.from(y, (v) => (Number.isFinite(v) ? v : null));
    const x = table ? Array.from(table.values("trial").subarray(0, n)) : [];
    const line = Array.from(best, (v) => (Number.isNaN(v) ? null : v));
    return { series: [x, clean, line] as uPlot.AlignedData, positive: least > 0, y };
    // The filter and the selection are drawn by the hook: new data makes it run.
  }, [table, version, experiment.spec.objective.type, rows, [...selected].join()]);
  const log = param("ylog") === "1" && positive;
  const metric = experiment.spec.objective.objectiveMetricName;
  const options = () => ({
    scales: {
      x: { time: false, range: (_u: uPlot, a: number, b: number): [number, number] =>
        [Math.min(a, 1) - 0.5, Math.max(b, 2) + 0.5] },
      y: log ? { distr: 3 as const } : {},
    },
    series: [
      {},
      { paths: () => null, points: { show: false } },
      {
        stroke: () => colour("best"), width: 2, points: { show: false },
        paths: uPlot.paths.stepped!({ align: 1 }), spanGaps: true,
      },
    ],
    hooks: { draw: [(u: uPlot) => latest.draw(u)] },
  });
  const latest = useMemo(() => ({ draw: (_u: uPlot) => {} }), []);
  latest.draw = (u) => table && drawTrials(u, { table, rows, values: y, maximize, selected });
  const constraints = constraintsOf(experiment);
  const at = (u: uPlot, left: number, top: number) => {
    if (!table) return null;
    const x = table.values("trial");
    let row = nearest(u, { left, top }, { x, y, rows });
    if (row < 0) {
      const edge = (edgeOf(u, maximize) - u.bbox.top) / devicePixelRatio;
      const others = new Float64Array(table.rows).fill(u.posToVal(edge, "y"));
      row = nearest(u, { left, top }, { x, y: others, rows: rows.filter((i) => y[i] !== y[i]) });
    }
    if (row < 0) return null;
    const trial = table.trial(row);
    const broken = brokenWords(constraints, table, row);
    const value = `${metric} ${short(table.values("objective")[row])}`;
    return {
      text: `trial ${trial}, ${lookOf(table.state(row)).word}\n` +
        (Number.isNaN(y[row]!) ? `no result; reported: ${value}` : value) +
        (broken === "" ? "" : `\nbreaks ${broken}`),
      open: () => go(link(["t", key.ns, key.name, trial])),
    };
  };
  const rowsOf = () => ({
    columns: [
      "trial", "state", metric, ...(constraints.length > 0 ? ["breaks"] : []), "best so far",
    ],
    rows: Array.from(rows, (row) => [
      table!.trial(row), table!.state(row),
      short(table!.values("objective")[row]),
      ...(constraints.length > 0 ? [brokenWords(constraints, table!, row)] : []),
      short((series[2] as number[])[row]),
    ]),
  });
  const best = bestOf(experiment);
  const summary = Number.isNaN(best)
    ? `${plural(rows.length, "trial")}, none with a result yet`
    : `${plural(rows.length, "trial")}; the best ${metric}, ${short(best)}, ` +
      `is that of trial ${bestNumber(experiment)}`;
  return (
    <Panel
      title={`History of ${metric}`}
      class={props.class ?? ""}
      shown={shownOf(rows.length, data)}
      summary={summary}
      command={plotCommand(key, "history", ...(log ? ["--log"] : []))}
      commandNote={plotNote()}
      table={table ? rowsOf : undefined}
      image
    >
      {data && table && table.rows === 0 ? (
        <Empty title={isEnded(experiment) ? "No trials" : "No trials yet"}>
          {!isEnded(experiment) && <p>The first appears here as soon as it is created.</p>}
        </Empty>
      ) : (
        <>
          <Chart
            data={series}
            options={options}
            form={`history ${log} ${positive}`}
            label={summary}
            x="trial"
            y={metric}
            at={at}
            height={310}
          />
          <Legend log={log} canLog={positive} constrained={constraints.length > 0} />
        </>
      )}
    </Panel>
  );
}
