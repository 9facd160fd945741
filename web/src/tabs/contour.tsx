// Two parameters at once, as the fitted model sees them: colour is the mean, hatching where its
// band is wide, dots are trials.
import { useEffect, useRef } from "preact/hooks";
import type { PartialDependence } from "../api/analysis.js";
import { readPartialDependence } from "../api/analysis.js";
import { varying } from "../api/columns.js";
import { count, short } from "../format.js";
import { useLoad } from "../load.js";
import { namespaceFlag, useShared } from "../pages/context.js";
import { VIRIDIS, shade } from "../raster.js";
import { finishedTrials, maximizes } from "../state.js";
import { colour, colours } from "../theme.js";
import { Empty, Panel } from "../ui/panel.js";
import { param, setParams } from "../url.js";

const [LEFT, BOTTOM, TOP] = [84, 34, 8];
const HEIGHT = 360;
const MOST_DOTS = 2000;

// The nearest of the values of an axis: numbers by their size, words by themselves.
function indexOf(values: string[], value: number | string | null): number {
  if (value === null) return -1;
  if (typeof value === "string") return values.indexOf(value);
  let [found, least] = [-1, Infinity];
  values.forEach((text, i) => {
    const distance = Math.abs(Number(text) - value);
    if (distance < least) [found, least] = [i, distance];
  });
  return found;
}

interface Drawn {
  model: PartialDependence;
  dots: { x: number; y: number }[]; // indices on the axes
  maximize: boolean;
}

function cells(drawn: Drawn): { mean: number[]; width: number[] } {
  const { model } = drawn;
  return { mean: model.mean, width: model.high.map((high, i) => high - model.low[i]!) };
}

function drawCells(context: CanvasRenderingContext2D, drawn: Drawn, width: number): void {
  const [ax, ay] = drawn.model.axes as [PartialDependence["axes"][0], PartialDependence["axes"][0]];
  const { mean, width: bands } = cells(drawn);
  const [low, high] = [Math.min(...mean), Math.max(...mean)];
  const spread = high - low || 1;
  const cellWidth = (width - LEFT - 8) / ax.values.length;
  const cellHeight = (HEIGHT - BOTTOM - TOP) / ay.values.length;
  const hatch = colour("surface");
  for (let i = 0; i < ax.values.length; ++i) {
    for (let j = 0; j < ay.values.length; ++j) {
      const at = i * ay.values.length + j;
      const share = (mean[at]! - low) / spread;
      const [r, g, b] = shade(VIRIDIS, drawn.maximize ? share : 1 - share);
      const [x, y] = [LEFT + i * cellWidth, HEIGHT - BOTTOM - (j + 1) * cellHeight];
      context.fillStyle = `rgb(${r} ${g} ${b})`;
      context.fillRect(x, y, cellWidth + 0.5, cellHeight + 0.5);
      // The model does not know: its band is wider than all the differences that it shows.
      if (bands[at]! > spread) {
        context.strokeStyle = hatch;
        context.lineWidth = 1;
        context.beginPath();
        context.moveTo(x, y + cellHeight);
        context.lineTo(x + cellWidth, y);
        context.stroke();
      }
    }
  }
  context.fillStyle = colour("ink");
  context.strokeStyle = colour("surface");
  for (const dot of drawn.dots) {
    const [x, y] = [LEFT + (dot.x + 0.5) * cellWidth, HEIGHT - BOTTOM - (dot.y + 0.5) * cellHeight];
    context.beginPath();
    context.arc(x, y, 2.5, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
  }
}

function tickText(text: string): string {
  const number = Number(text);
  return text.trim() === "" || Number.isNaN(number) ? text.slice(0, 12)
    : short(Number(number.toPrecision(3)));
}

function drawTicks(context: CanvasRenderingContext2D, drawn: Drawn, width: number): void {
  const [ax, ay] = drawn.model.axes as [PartialDependence["axes"][0], PartialDependence["axes"][0]];
  context.fillStyle = colour("dim");
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "center";
  const every = (n: number, most: number) => Math.max(1, Math.ceil(n / most));
  ax.values.forEach((text, i) => {
    if (i % every(ax.values.length, 6) !== 0) return;
    const x = LEFT + ((i + 0.5) / ax.values.length) * (width - LEFT - 8);
    context.fillText(tickText(text), x, HEIGHT - BOTTOM + 16);
  });
  context.textAlign = "right";
  ay.values.forEach((text, j) => {
    if (j % every(ay.values.length, 7) !== 0) return;
    const y = HEIGHT - BOTTOM - ((j + 0.5) / ay.values.length) * (HEIGHT - BOTTOM - TOP);
    context.fillText(tickText(text), LEFT - 6, y + 4, LEFT - 8);
  });
}

function Picture(props: { drawn: Drawn; label: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const tint = colours.value;
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
  return (
    <div class="contour">
      <canvas ref={canvas} role="img" aria-label={props.label} style={{ height: `${HEIGHT}px` }} />
    </div>
  );
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

export function Contour() {
  const { experiment, data, rows, key } = useShared();
  const table = data!.table;
  const every = Uint32Array.from({ length: table.rows }, (_, i) => i);
  const names = varying(table.columns.filter((one) => one.name.startsWith("param.")), every)
    .map((one) => one.name.slice(6));
  const x = names.includes(param("cx")) ? param("cx") : (names[0] ?? "");
  const y = names.includes(param("cy")) && param("cy") !== x ? param("cy")
    : (names.find((name) => name !== x) ?? "");
  const loaded = useLoad(
    y === "" ? "" : `${key.ns}/${key.name}/${finishedTrials(experiment)}/${x}/${y}`,
    (abort) => readPartialDependence(key, [x, y], abort),
  );
  const model = loaded.value;
  const metric = experiment.spec.objective.objectiveMetricName;
  const few = model?.basis.tooFew;
  const label = `${metric} by ${x} and ${y}, averaged over all other parameters`;
  const at = (name: string, row: number) => table.column(`param.${name}`)?.at(row) ?? null;
  const dots = model && !few && model.axes.length === 2
    ? Array.from(rows.subarray(0, MOST_DOTS), (row) => ({
      x: indexOf(model.axes[0]!.values, at(x, row)),
      y: indexOf(model.axes[1]!.values, at(y, row)),
    })).filter((dot) => dot.x >= 0 && dot.y >= 0)
    : [];
  return (
    <Panel
      title="Two parameters at once"
      image
      summary={label}
      command={`shirabe plot ${key.name}${namespaceFlag(key)} contour -o contour.svg`}
      tools={names.length > 1 && (
        <>
          <Chooser names={names} name={x} of="cx" label="Across" />
          <Chooser names={names.filter((one) => one !== x)} name={y} of="cy" label="Up" />
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
      ) : (
        <>
          <Picture drawn={{ model, dots, maximize: maximizes(experiment) }} label={label} />
          <div class="legend">
            <span>worst <span class="ramp" aria-hidden="true" /> best</span>
            <span>hatched: the model does not know</span>
            <span>
              dots: {rows.length > MOST_DOTS
                ? `the first ${count(MOST_DOTS)} of ${count(rows.length)} trials` : "trials"}
            </span>
          </div>
        </>
      )}
    </Panel>
  );
}
