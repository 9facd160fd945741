// Two parameters at once, as the fitted model sees them: colour is the mean, hatching where its
// band is wide, dots are trials.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { PartialDependence } from "../api/analysis.js";
import { partialDependencePath, readPartialDependence } from "../api/analysis.js";
import { varying } from "../api/columns.js";
import { defaultScale } from "../axes.js";
import { pairOf, placing, possible } from "../contour.js";
import { count, short } from "../format.js";
import { useLoad } from "../load.js";
import type { Shared } from "../pages/context.js";
import { isFiltered, plotCommand, plotNote, useShared } from "../pages/context.js";
import { recording } from "../recording.js";
import { finishedTrials, maximizes } from "../state.js";
import { colours } from "../theme.js";
import { Empty, Panel } from "../ui/panel.js";
import { Ramp } from "../ui/ramp.js";
import { param, setParams } from "../url.js";
import type { Dot, Drawn, Names } from "./contour_draw.js";
import { HEIGHT, boundsOf, drawCells, drawTicks, wordsAt } from "./contour_draw.js";

const MOST_DOTS = 2000;

interface Tip {
  left: number;
  top: number;
  width: number; // of the picture
  text: string;
}

function Picture(props: { drawn: Drawn; label: string; names: Names }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [tip, setTip] = useState<Tip | null>(null);
  const tint = colours.value;
  const { model } = props.drawn;
  useEffect(() => {
    const element = canvas.current!;
    const paint = () => {
      const width = element.parentElement!.clientWidth;
      const scale = devicePixelRatio;
      element.width = width * scale;
      element.height = HEIGHT * scale;
      element.style.width = `${width}px`;
      const context = element.getContext("2d")!;
      context.scale(scale, scale);
      drawCells(context, props.drawn, width);
      drawTicks(context, props.drawn, width);
    };
    const observer = new ResizeObserver(paint);
    observer.observe(element.parentElement!);
    paint();
    return () => observer.disconnect();
  }, [props.drawn, tint]);
  const find = (event: PointerEvent): Tip | null => {
    const [left, top, width] = [event.offsetX, event.offsetY, canvas.current!.clientWidth];
    const text = wordsAt(model, props.names, width, [left, top]);
    return text === null ? null : { left, top, width, text };
  };
  return (
    <div class="contour">
      <canvas
        ref={canvas}
        role="img"
        aria-label={props.label}
        style={{ height: `${HEIGHT}px` }}
        onPointerMove={(event) => setTip(find(event))}
        onPointerLeave={() => setTip(null)}
      />
      {tip && (
        <div
          class="tip"
          style={{
            top: `${tip.top + 14}px`,
            ...(tip.left > tip.width / 2 ? { right: `${tip.width - tip.left + 14}px` }
              : { left: `${tip.left + 14}px` }),
          }}
        >
          {tip.text}
        </div>
      )}
    </div>
  );
}

// The trials that the filter leaves, where they lie; what is selected comes last, on top.
function dotsOf(model: PartialDependence, shared: Shared): Dot[] {
  const { data, rows, selected, experiment } = shared;
  const table = data!.table;
  const [x, y] = model.axes.map((axis) => {
    const column = table.column(`param.${axis.parameter}`);
    if (!column) return () => NaN;
    return placing(axis, column, defaultScale(column.name, experiment) === "log");
  }) as [(row: number) => number, (row: number) => number];
  const dot = (marked: boolean) => (row: number) =>
    ({ x: x(row), y: y(row), selected: marked });
  const isMarked = (row: number) => selected.has(table.trial(row));
  return [
    ...Array.from(rows.subarray(0, MOST_DOTS), dot(false)),
    ...Array.from(selected.size > 0 ? rows.filter(isMarked) : [], dot(true)),
  ].filter((one) => !Number.isNaN(one.x) && !Number.isNaN(one.y));
}

function Chooser(props: { names: string[]; name: string; of: "cx" | "cy"; label: string }) {
  return (
    <label>
      {props.label}
      <select
        value={props.name}
        onChange={(event) => setParams({ [props.of]: event.currentTarget.value })}
      >
        {props.names.map((name) => <option key={name}>{name}</option>)}
      </select>
    </label>
  );
}

function Ends(props: { model: PartialDependence; maximize: boolean }) {
  const [low, high] = boundsOf(props.model);
  const [worst, best] = props.maximize ? [low, high] : [high, low];
  return <Ramp worst={worst} best={best} full />;
}

export function Contour() {
  const shared = useShared();
  const { experiment, data, rows, key } = shared;
  const table = data!.table;
  const every = Uint32Array.from({ length: table.rows }, (_, i) => i);
  const names = varying(table.columns.filter((one) => one.name.startsWith("param.")), every)
    .map((one) => one.name.slice(6));
  const report = recording();
  const { x, y, xs, ys } = pairOf(names, [param("cx"), param("cy")],
    (...pair) => report === null || report.holds(partialDependencePath(key, pair)));
  const loaded = useLoad(
    y === "" ? "" : `${key.ns}/${key.name}/${finishedTrials(experiment)}/${x}/${y}`,
    (abort) => readPartialDependence(key, [x, y], abort),
  );
  const rules = experiment.spec.shirabe?.space;
  const { parameters } = experiment.spec;
  const model = useMemo(() => loaded.value && possible(loaded.value, rules ?? {}, parameters),
    [loaded.value, JSON.stringify([rules, parameters])]);
  const never = model !== undefined && model.mean.length > 0 && model.mean.every(Number.isNaN);
  const metric = experiment.spec.objective.objectiveMetricName;
  const few = model?.basis.tooFew;
  const label = `${metric} by ${x} and ${y}, averaged over all other parameters`;
  const maximize = maximizes(experiment);
  // What is drawn stays the same while the pointer moves.
  const drawn = useMemo(
    () => (model && !few && !never && model.axes.length === 2
      ? { model, dots: dotsOf(model, shared), maximize } : null),
    [model, rows, maximize, [...shared.selected].join()],
  );
  return (
    <Panel
      title="Two parameters at once"
      image
      summary={label}
      command={plotCommand(key, "contour", ...(y === "" ? [] : ["-p", x, "-p", y]))}
      commandNote={plotNote()}
      tools={names.length > 1 && (
        <>
          <Chooser names={xs} name={x} of="cx" label="Across" />
          <Chooser names={ys} name={y} of="cy" label="Up" />
        </>
      )}
      table={model && (() => ({
        columns: [x, y, metric, "low", "high"],
        rows: model.mean.map((mean, i) => {
          const n = model.axes[1]!.values.length;
          return [model.axes[0]!.values[Math.floor(i / n)]!, model.axes[1]!.values[i % n]!,
            short(mean), short(model.low[i]), short(model.high[i])];
        }),
      }))}
    >
      {y === "" ? (
        <Empty title="Fewer than two parameters vary" />
      ) : !model ? (
        <p class="dim">{loaded.error?.message ?? "Computing…"}</p>
      ) : few ? (
        <Empty title="Too few trials to tell"><p>{few}</p></Empty>
      ) : never ? (
        <Empty title={`No trial can have both ${x} and ${y}`} />
      ) : drawn && (
        <>
          <Picture drawn={drawn} label={label} names={{ x, y, metric }} />
          <div class="legend">
            <Ends model={drawn.model} maximize={maximize} />
            <span>hatched: the model does not know</span>
            {model.mean.some(Number.isNaN) && <span>blank: no trial can have both</span>}
            <span>
              dots: {rows.length > MOST_DOTS
                ? `the first ${count(MOST_DOTS)} of ${count(rows.length)} trials` : "trials"}
            </span>
            {isFiltered() && <span>cells: of all trials; the filter does not change them</span>}
          </div>
        </>
      )}
    </Panel>
  );
}
