// Learning curves: the best trials, those that run, and those that are selected, over steps or
// time.
import uPlot from "uplot";
import { useMemo, useRef } from "preact/hooks";
import type { TrialColumns } from "../api/columns.js";
import type { ShownCurve } from "../api/curves.js";
import { readShown } from "../api/curves.js";
import { count, plural, short } from "../format.js";
import { useLoad } from "../load.js";
import { isFiltered, plotCommand, toggleTrial, useShared } from "../pages/context.js";
import { lookOf, maximizes } from "../state.js";
import { colour, colours } from "../theme.js";
import { trialColour } from "../trial_colour.js";
import { Chart } from "../ui/chart.js";
import { useDraft } from "../ui/fields.js";
import { FilterBar } from "../ui/filterbar.js";
import { Empty, Panel } from "../ui/panel.js";
import { Icon } from "../ui/state.js";
import { go, link, param, setParams } from "../url.js";

// The best that have ended, all that run (the newest hundred), and what is selected.
export function wanted(
  table: TrialColumns,
  rows: Uint32Array,
  how: { top: number; maximize: boolean; selected: Set<number> },
): number[] {
  const objective = table.values("objective");
  const state = table.column("state")!;
  const ended = Array.from(rows).filter(
    (row) => Number.isFinite(objective[row]!) && state.word(row) !== "Running",
  );
  ended.sort((a, b) => (how.maximize ? -1 : 1) * (objective[a]! - objective[b]!));
  const running = Array.from(rows).filter((row) => state.word(row) === "Running").slice(-100);
  const chosen = [...how.selected].flatMap((trial) => table.rowOf(trial) ?? []);
  return [...new Set([...chosen, ...ended.slice(0, how.top), ...running])];
}

interface Shown {
  trial: number;
  x: ArrayLike<number>;
  y: ArrayLike<number>;
  running: boolean;
  width: number;
  alpha: number;
}

const PIXELS = 1400;

function joinedOf(shown: Shown[]): uPlot.AlignedData {
  return uPlot.join(
    shown.map((one) => [
      Array.from(one.x), Array.from(one.y, (v) => (Number.isFinite(v) ? v : null)),
    ] as uPlot.AlignedData),
  );
}

function Controls(props: { metrics: string[]; metric: string; top: number; canLog: boolean }) {
  return (
    <>
      <label>
        Metric
        <select
          value={props.metric}
          onChange={(event) => setParams({ metric: event.currentTarget.value })}
        >
          {props.metrics.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label>
        Best
        <input
          type="number"
          min={0}
          max={200}
          {...useDraft(String(props.top), (top) => setParams({ top }))}
        />
      </label>
      <label>
        Over
        <select
          value={param("over") || "steps"}
          onChange={(event) => setParams({ over: event.currentTarget.value })}
        >
          <option>steps</option>
          <option>time</option>
        </select>
      </label>
      {(["xlog", "ylog"] as const).map((name) => (
        <label key={name}>
          <input
            type="checkbox"
            checked={param(name) === "1"}
            disabled={name === "ylog" && !props.canLog}
            onChange={(event) => setParams({ [name]: event.currentTarget.checked ? "1" : "" })}
          />
          log {name[0]}
        </label>
      ))}
    </>
  );
}

const lightness = () => Number(colour("curve"));

export default function Curves() {
  const shared = useShared();
  const light = colours.value > 0 ? lightness() : 0; // of this theme
  const { experiment, data, key, rows, selected } = shared;
  if (!data) return <div aria-busy="true" />;
  const { objectiveMetricName, additionalMetricNames } = experiment.spec.objective;
  const metrics = [objectiveMetricName, ...(additionalMetricNames ?? [])];
  const metric = param("metric") || objectiveMetricName;
  const top = Math.max(0, Math.min(200, Number(param("top") || 20)));
  const table = data.table;
  const chosen = useMemo(
    () => wanted(table, rows, { top, maximize: maximizes(experiment), selected }),
    [data.version, rows, top, [...selected].join()],
  );
  const trials = chosen.map((row) => table.trial(row));
  const byTime = param("over") === "time";
  const xlog = param("xlog") === "1";
  const id = `${key.ns}/${key.name}/${metric}/${byTime}/${xlog}`;
  // What runs has more to show whenever its last step is another.
  const steps = chosen.map((row) => table.values("lastStep")[row]).join();
  const loaded = useLoad(`${id}/${trials.join()}/${steps}`, (abort) => readShown(key, {
    metric, trials, time: byTime, log: xlog, pixels: PIXELS,
  }, abort));
  // The curves of before stay until the new ones are there.
  const kept = useRef<{ id: string; curves: ShownCurve[] }>({ id, curves: [] });
  if (kept.current.id !== id) kept.current = { id, curves: [] };
  if (loaded.value) kept.current.curves = loaded.value;
  const { curves } = kept.current;
  const shown = useMemo(() => {
    const place = new Map(trials.map((trial, i) => [trial, i]));
    return curves.filter((one) => one.x.length > 0 && place.has(one.trial)).map((one): Shown => {
      const i = place.get(one.trial)!;
      const running = table.column("state")!.word(table.rowOf(one.trial)!) === "Running";
      const marked = selected.has(one.trial);
      return {
        ...one,
        running,
        width: marked ? 3 : i === 0 && selected.size === 0 ? 2.4 : 1.4,
        alpha: marked || selected.size === 0 ? 1 : 0.5,
      };
    }).sort((a, b) => place.get(a.trial)! - place.get(b.trial)!);
  }, [curves, trials.join(), [...selected].join()]);
  const joined = useMemo(() => (shown.length > 0 ? joinedOf(shown) : null), [shown]);
  const least = useMemo(() => shown.reduce((low, one) => {
    for (let i = 0; i < one.y.length; ++i) if (one.y[i]! < low) low = one.y[i]!;
    return low;
  }, Infinity), [shown]);
  const ylog = param("ylog") === "1" && least > 0;
  const options = () => ({
    scales: { x: { time: false, ...(xlog ? { distr: 3 as const } : {}) },
      y: ylog ? { distr: 3 as const } : {} },
    cursor: { points: { show: false }, focus: { prox: 24 } },
    focus: { alpha: 0.25 },
    series: [{}, ...shown.map((one) => ({
      stroke: () => trialColour(one.trial, lightness(), one.alpha), width: one.width,
      spanGaps: true, points: { show: one.x.length < 3, size: 5 },
    }))],
  });
  const at = (u: uPlot, left: number, top_: number) => {
    let [found, reach] = [-1, 24];
    const i = u.cursor.idx;
    if (i === null || i === undefined) return null;
    for (let s = 1; s <= shown.length; ++s) {
      const value = nearValue(u.data[s]!, i);
      if (value === null) continue;
      const distance = Math.abs(u.valToPos(value, "y") - top_);
      if (distance < reach) [found, reach] = [s, distance];
    }
    if (found < 0 || left < 0) return null;
    const { trial } = shown[found - 1]!;
    return {
      text: `trial ${trial}, ${lookOf(table.state(table.rowOf(trial)!)).word}\n` +
        `${metric} ${short(nearValue(u.data[found]!, i))} at ${byTime ? "" : "step "}` +
        `${short(u.data[0][i])}${byTime ? " s" : ""}`,
      open: () => go(link(["t", key.ns, key.name, trial, "metrics"])),
    };
  };
  const summary = `${plural(shown.length, "curve")} of ${metric}: the best ${top} trials that ` +
    "ended, those that run, and those that are selected";
  return (
    <>
      <FilterBar
        shown={`${count(shown.length)} of ${count(table.rows)} trials shown: the best ${top}, ` +
          `those that run${selected.size > 0 ? ", those selected" : ""}`}
      />
      <Panel
        title={`Curves of ${metric}`}
        image
        summary={summary}
        command={plotCommand(key, "curves",
          ...(metric === objectiveMetricName ? [] : ["--metric", metric]), "--trials", `${top}`,
          ...(ylog ? ["--log"] : []))}
        commandNote={trials.length > top || isFiltered() || byTime || xlog
          ? `The command draws ${top} curves at most, over steps: of the best of all trials, ` +
            "then of those that run." : ""}
        tools={<Controls metrics={metrics} metric={metric} top={top} canLog={least > 0} />}
        table={() => ({
          columns: ["trial", byTime ? "seconds" : "step", metric],
          rows: shown.flatMap((one) =>
            Array.from(one.x, (x, i) => [one.trial, x, short(one.y[i])])),
        })}
      >
        {loaded.error && <p class="problem">{loaded.error.message}</p>}
        {joined === null && trials.length > 0 && !loaded.value ? (
          <p class="dim">{loaded.error ? "" : "Loading…"}</p>
        ) : joined === null ? (
          <Empty title={trials.length === 0 ? "No trial meets this filter" : "No values yet"}>
            <p>Values appear while a trial runs, as soon as it reports {metric}.</p>
          </Empty>
        ) : (
          <Chart
            data={joined}
            options={options}
            form={[
              ...shown.map((one) => `${one.trial}/${one.width}/${one.alpha}`), xlog, ylog,
            ].join()}
            label={summary}
            x={byTime ? "seconds since the trial started" : "step"}
            y={metric}
            height={460}
            at={at}
          />
        )}
        <div class="legend">
          {shown.slice(0, 30).map((one) => (
            <button key={one.trial} class="plain chip" onClick={() => toggleTrial(one.trial)}
              aria-pressed={selected.has(one.trial)}>
              <span class="swatch" style={{ background: trialColour(one.trial, light) }} />
              {one.trial}
              {one.running && <> <Icon shape="play" /><span class="unseen">running</span></>}
            </button>
          ))}
        </div>
      </Panel>
    </>
  );
}

// A curve need not have a value at each x of the others: the one before counts.
function nearValue(values: ArrayLike<number | null | undefined>, at: number): number | null {
  for (let i = at; i >= 0 && i > at - 200; --i) {
    const value = values[i];
    if (value !== null && value !== undefined) return value;
  }
  return null;
}
