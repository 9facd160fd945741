// The metrics of one trial over its steps, with what lost attempts had reported as well.
import uPlot from "uplot";
import { useMemo, useState } from "preact/hooks";
import type { Curve } from "../api/observations.js";
import { readCurves } from "../api/observations.js";
import { plural, short } from "../format.js";
import { useLoad } from "../load.js";
import { namespaceFlag } from "../pages/context.js";
import type { TrialView } from "../pages/trial.js";
import { trialState } from "../state.js";
import { colour } from "../theme.js";
import { Chart, drawMark } from "../ui/chart.js";
import { Empty, Panel } from "../ui/panel.js";

// Curves on one axis: the x of all of them, and of each its y there, or nothing.
export function joined(curves: { x: number[]; y: number[] }[]): uPlot.AlignedData {
  const xs = [...new Set(curves.flatMap((one) => one.x))].sort((a, b) => a - b);
  const place = new Map(xs.map((x, i) => [x, i]));
  const columns = curves.map((one) => {
    const column = new Array<number | null | undefined>(xs.length).fill(undefined);
    one.x.forEach((x, i) => {
      const y = one.y[i]!;
      column[place.get(x)!] = Number.isFinite(y) ? y : null;
    });
    return column;
  });
  return [xs, ...columns] as uPlot.AlignedData;
}

// Values that are no numbers are not on the line: a cross at the top of their step.
function drawLost(u: uPlot, curves: Curve[]): void {
  const context = u.ctx;
  context.save();
  context.strokeStyle = colour("bad");
  context.lineWidth = 1.6 * devicePixelRatio;
  for (const { x, y } of curves) {
    for (let i = 0; i < x.length; ++i) {
      if (Number.isFinite(y[i]!)) continue;
      const at = { x: u.valToPos(x[i]!, "x", true), y: u.bbox.top + 5 * devicePixelRatio };
      drawMark(context, "cross", { ...at, size: 3 * devicePixelRatio });
    }
  }
  context.restore();
}

// 3 values that are no number (✕), the first at step 6
function lostWords(curves: { x: number[]; y: number[] }[]): string {
  const steps = [...new Set(
    curves.flatMap(({ x, y }) => x.filter((_, i) => !Number.isFinite(y[i]!))),
  )];
  if (steps.length === 0) return "";
  return `${plural(steps.length, "value")} that ${steps.length === 1 ? "is" : "are"} no number ` +
    `(✕), the first at step ${Math.min(...steps)}`;
}

function MetricChart(props: { name: string; curves: Curve[]; view: TrialView }) {
  const { curves, name, view } = props;
  const data = useMemo(() => joined(curves), [curves]);
  const counted = curves.filter((one) => !one.superseded);
  const values = counted.flatMap((one) => one.y).filter(Number.isFinite);
  const [low, high] = [Math.min(Infinity, ...values), Math.max(-Infinity, ...values)];
  const last = counted.at(-1)?.y.at(-1);
  const summary = `${name}: ${plural(values.length, "value")}, from ${short(low)} to ` +
    `${short(high)}, last ${short(last)}`;
  const lost = lostWords(counted);
  const latest = useMemo(() => ({ draw: (_u: uPlot) => {} }), []);
  latest.draw = (u) => drawLost(u, counted);
  const options = () => ({
    scales: { x: { time: false } },
    cursor: { points: { show: true } },
    hooks: { draw: [(u: uPlot) => latest.draw(u)] },
    series: [
      {},
      ...curves.map((one) => ({
        stroke: () => colour(one.superseded ? "bolt" : "accent"),
        dash: one.superseded ? [4, 4] : [],
        width: 1.8,
        spanGaps: true,
        points: { show: one.x.length < 60, size: 4 },
      })),
    ],
  });
  const at = (u: uPlot) => {
    const i = u.cursor.idx;
    if (i === null || i === undefined) return null;
    const lines = curves.flatMap((one) => {
      const place = one.x.indexOf(u.data[0][i]!);
      if (place < 0) return [];
      const value = Number.isNaN(one.y[place]!) ? "NaN" : short(one.y[place]);
      return [`attempt ${one.attempt}${one.superseded ? " (lost)" : ""}: ${value}`];
    });
    return lines.length === 0 ? null : { text: `step ${u.data[0][i]}\n${lines.join("\n")}` };
  };
  return (
    <Panel
      title={name}
      class="half"
      shown={lost}
      summary={lost === "" ? summary : `${summary}; ${lost}`}
      image
      command={`shirabe get metrics ${view.key.name}/${view.number}${namespaceFlag(view.key)}` +
        " --all-attempts"}
      table={() => ({
        columns: ["attempt", "step", name, "counts"],
        rows: curves.flatMap((one) =>
          one.x.map((x, i) => [one.attempt, x, short(one.y[i]), one.superseded ? "no" : "yes"]),
        ),
      })}
    >
      <Chart
        data={data}
        options={options}
        form={curves.map((one) => `${one.attempt}${one.superseded}`).join()}
        label={summary}
        x="step"
        height={240}
        at={at}
      />
    </Panel>
  );
}

export default function Metrics(props: { view: TrialView }) {
  const { key, number, trial } = props.view;
  const extras = trial.status.shirabe;
  const [whole, setWhole] = useState(true);
  // What has been reported since is read again when the record says that there is more.
  const state = `${trialState(trial)} ${extras.lastStep ?? 0} ${extras.attempts ?? 0}`;
  const loaded = useLoad(`${key.ns}/${key.name}/${number}/${whole}`, (abort) =>
    readCurves(key, number, { whole, abort }),
  );
  useMemo(() => loaded.value && loaded.again(), [state]);
  if (!loaded.value) {
    return loaded.error ? <p class="problem">{loaded.error.message}</p> : <div aria-busy="true" />;
  }
  const lost = [...loaded.value.values()].flat().some((one) => one.superseded);
  return (
    <>
      {(lost || !whole) && (
        <label>
          <input
            type="checkbox"
            checked={whole}
            onChange={(event) => setWhole(event.currentTarget.checked)}
          />
          with values that a later attempt has run again (dashed)
        </label>
      )}
      {loaded.value.size === 0 && <Empty title="No metric has been reported yet" />}
      <div class="panels">
        {[...loaded.value].map(([name, curves]) => (
          <MetricChart key={name} name={name} curves={curves} view={props.view} />
        ))}
      </div>
    </>
  );
}
