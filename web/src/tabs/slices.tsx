// The objective over each parameter alone, with what the model makes of it: mean and 90 % band.
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { PartialDependence } from "../api/analysis.js";
import { byImportance, readImportance, readPartialDependence } from "../api/analysis.js";
import type { Axis } from "../axes.js";
import { defaultScale, makeAxis, positionOf, qualityOfTrials, ticksOf } from "../axes.js";
import type { Column } from "../api/columns.js";
import { varying } from "../api/columns.js";
import type { DotPicture } from "../dots.js";
import { drawDots } from "../dots.js";
import { count, plural, short, word } from "../format.js";
import { useLoad } from "../load.js";
import { isFiltered, plotCommand, plotNote, shownOf, useShared } from "../pages/context.js";
import { shade } from "../raster.js";
import { finishedTrials } from "../state.js";
import { colour, colours } from "../theme.js";
import { inTurns } from "../turns.js";
import { everyNth, fitted, within } from "../ui/fit.js";
import { Empty, Panel } from "../ui/panel.js";
import { param, setParams } from "../url.js";
import { paletteFor } from "./parallel.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM] = [290, 200, 52, 26];
const MANY = 5000; // trials; more are drawn by the pixel
const MOST = 24; // pictures

interface Slice {
  x: Axis;
  y: Axis;
  rows: Uint32Array;
  quality: Float32Array;
  model: PartialDependence | null;
  selected: Uint32Array; // of the rows
}

function place(at: number, from: number, to: number): number {
  return from + at * (to - from);
}

function drawAxes(context: CanvasRenderingContext2D, slice: Slice): void {
  context.font = "11px system-ui, sans-serif";
  context.strokeStyle = colour("line");
  context.fillStyle = colour("dim");
  context.textAlign = "right";
  for (const tick of ticksOf(slice.y, 4)) {
    const y = place(tick.position, HEIGHT - BOTTOM, 8);
    context.beginPath();
    context.moveTo(LEFT, y);
    context.lineTo(WIDTH - 6, y);
    context.stroke();
    context.fillText(tick.text, LEFT - 5, y + 4, LEFT - 6);
  }
  drawTicks(context, slice.x);
}

// Of categories as much as has room between two, of many not each; a text at the end stays within the picture.
function drawTicks(context: CanvasRenderingContext2D, axis: Axis): void {
  context.textAlign = "center";
  const ticks = ticksOf(axis, 4);
  const wide = WIDTH - 8 - LEFT;
  const step = axis.scale === "category" ? everyNth(ticks.length, wide) : 1;
  const room = axis.scale === "category" ? step * wide / ticks.length - 4 : WIDTH;
  for (const tick of ticks.filter((_, i) => i % step === 0)) {
    const text = fitted(context, tick.text, room);
    const x = place(inset(axis, tick.position), LEFT, WIDTH - 8);
    const { width } = context.measureText(text);
    context.fillText(text, within(x, width, [0, WIDTH - 1]), HEIGHT - BOTTOM + 16);
  }
}

// Categories keep away from the edges.
function inset(axis: Axis, at: number): number {
  if (axis.scale !== "category") return at;
  const n = axis.column.dictionary.length;
  return n < 2 ? 0.5 : (at * (n - 1) + 0.5) / n;
}

// Where a value that the model names stands on our axis.
function modelX(axis: Axis, text: string): number {
  if (axis.scale !== "category") return positionOf(axis, Number(text));
  const i = axis.column.dictionary.indexOf(text);
  return i < 0 ? NaN : inset(axis, i / axis.high);
}

function drawModel(context: CanvasRenderingContext2D, slice: Slice): void {
  const { model, x, y } = slice;
  if (!model || model.axes.length === 0) return;
  const points = model.axes[0]!.values.map((text, i) => ({
    x: place(modelX(x, text), LEFT, WIDTH - 8),
    mean: place(positionOf(y, model.mean[i]!), HEIGHT - BOTTOM, 8),
    low: place(positionOf(y, model.low[i]!), HEIGHT - BOTTOM, 8),
    high: place(positionOf(y, model.high[i]!), HEIGHT - BOTTOM, 8),
  })).filter((one) => !Number.isNaN(one.x) && !Number.isNaN(one.mean));
  context.strokeStyle = context.fillStyle = colour("best");
  context.lineWidth = 2;
  if (x.scale === "category") {
    for (const one of points) {
      context.beginPath();
      context.moveTo(one.x, one.low);
      context.lineTo(one.x, one.high);
      context.moveTo(one.x - 8, one.mean);
      context.lineTo(one.x + 8, one.mean);
      context.stroke();
    }
    return;
  }
  context.globalAlpha = 0.2;
  context.beginPath();
  for (const one of points) context.lineTo(one.x, one.high);
  for (const one of [...points].reverse()) context.lineTo(one.x, one.low);
  context.fill();
  context.globalAlpha = 1;
  context.beginPath();
  for (const one of points) context.lineTo(one.x, one.mean);
  context.stroke();
}

// Categories: side by side rather than on top of each other, the same way each time.
function placeOf(slice: Slice, row: number): [x: number, y: number] {
  const { x, y } = slice;
  const shift = x.scale === "category" ? ((row * 7919) % 21) - 10 : 0;
  const left = place(inset(x, positionOf(x, x.column.values[row]!)), LEFT, WIDTH - 8);
  return [left + shift, place(positionOf(y, y.column.values[row]!), HEIGHT - BOTTOM, 8)];
}

function drawEach(context: CanvasRenderingContext2D, slice: Slice): void {
  const { rows, quality } = slice;
  const size = rows.length > 500 ? 2 : 7;
  const palette = paletteFor();
  context.globalAlpha = rows.length > 500 ? 0.6 : 0.9;
  for (const row of rows) {
    const [left, top] = placeOf(slice, row);
    if (Number.isNaN(left) || Number.isNaN(top)) continue;
    const [r, g, b] = shade(palette, Number.isNaN(quality[row]!) ? 0 : quality[row]!);
    context.fillStyle = `rgb(${r} ${g} ${b})`;
    if (size < 4) {
      context.fillRect(left - size / 2, top - size / 2, size, size);
      continue;
    }
    context.beginPath();
    context.arc(left, top, size / 2, 0, 2 * Math.PI);
    context.fill();
  }
  context.globalAlpha = 1;
}

// On top of all, with a ring as in the history.
function drawSelected(context: CanvasRenderingContext2D, slice: Slice): void {
  context.fillStyle = colour("best");
  context.strokeStyle = colour("ink");
  context.lineWidth = 2;
  for (const row of slice.selected) {
    const [left, top] = placeOf(slice, row);
    if (Number.isNaN(left) || Number.isNaN(top)) continue;
    context.beginPath();
    context.arc(left, top, 5, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
  }
}

function* dotsOf(slice: Slice): Generator<void, DotPicture> {
  const { rows } = slice;
  const [x, y, quality] = [rows, rows, rows].map((all) => new Float32Array(all.length)) as
    [Float32Array, Float32Array, Float32Array];
  for (let i = 0; i < rows.length; ++i) {
    if (i % MANY === MANY - 1) yield;
    [x[i], y[i]] = placeOf(slice, rows[i]!);
    quality[i] = slice.quality[rows[i]!]!;
  }
  return yield* drawDots({ width: WIDTH, height: HEIGHT, x, y, quality, colours: paletteFor() });
}

function drawPicture(context: CanvasRenderingContext2D, picture: DotPicture): void {
  const dots = new OffscreenCanvas(WIDTH, HEIGHT);
  dots.getContext("2d")!.putImageData(new ImageData(picture.pixels, WIDTH, HEIGHT), 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(dots, 0, 0, WIDTH, HEIGHT);
}

function drawSlice(canvas: HTMLCanvasElement, slice: Slice, picture: DotPicture | null): void {
  const scale = devicePixelRatio;
  canvas.width = WIDTH * scale;
  canvas.height = HEIGHT * scale;
  const context = canvas.getContext("2d")!;
  context.scale(scale, scale);
  drawAxes(context, slice);
  context.save();
  context.beginPath();
  context.rect(LEFT - 4, 4, WIDTH - LEFT, HEIGHT - BOTTOM);
  context.clip();
  if (picture) drawPicture(context, picture);
  else drawEach(context, slice);
  drawModel(context, slice);
  drawSelected(context, slice);
  context.restore();
}

function OneSlice(props: { slice: Slice; metric: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const tint = colours.value;
  const { slice } = props;
  useEffect(() => {
    if (slice.rows.length <= MANY) return drawSlice(canvas.current!, slice, null);
    const abort = new AbortController();
    void inTurns(dotsOf(slice), abort.signal).then((picture) => {
      if (picture && canvas.current) drawSlice(canvas.current, slice, picture);
    });
    return () => abort.abort();
  }, [slice, tint]);
  const label = `${props.metric} over ${slice.x.name}, ${count(slice.rows.length)} trials`;
  return (
    <figure class="slice">
      <figcaption>
        {slice.x.name} <small>{slice.x.scale === "category" ? "" : slice.x.scale}</small>
      </figcaption>
      <canvas
        ref={canvas}
        role="img"
        aria-label={label}
        style={{ width: `${WIDTH}px`, height: `${HEIGHT}px` }}
      />
    </figure>
  );
}

// Of many parameters those that matter most, the most important first, as long as none is known to
// matter those that come first.
function useMostImportant(all: Column[], done: number) {
  const { key } = useShared();
  const loaded = useLoad(all.length > MOST ? `${key.ns}/${key.name}/${done}` : "",
    (abort) => readImportance(key, "gp", abort));
  const last = useRef(loaded.value); // it stays while the next one is computed
  last.current = loaded.value ?? last.current;
  const ranked = (last.current?.parameters ?? []).length > 0;
  const waits = all.length > MOST && !last.current && !loaded.error;
  if (all.length <= MOST) return { parameters: all, waits, omission: "" };
  return {
    parameters: byImportance(all, last.current).slice(0, MOST), waits,
    omission: `${MOST} of the ${count(all.length)} parameters that vary: ` +
      (ranked ? "those that matter most, the most important first" : "the first ones"),
  };
}

// a, b or c
function eitherOf(names: string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}

export function Slices() {
  const { experiment, data, rows, key, selected } = useShared();
  const table = data!.table;
  const metric = experiment.spec.objective.objectiveMetricName;
  const done = finishedTrials(experiment);
  const { parameters, waits, omission } = useMostImportant(varying(
    table.columns.filter((one) => one.name.startsWith("param.")),
    Uint32Array.from({ length: table.rows }, (_, i) => i),
  ), done);
  const names = parameters.map((one) => one.name).join();
  const withModel = param("model") !== "off";
  const models = useLoad(
    withModel && parameters.length > 0 && !waits ? `${key.ns}/${key.name}/${done}/${names}` : "",
    (abort) => Promise.all(parameters.map((one) =>
      readPartialDependence(key, [one.name.slice(6)], abort).catch(() => null))),
  );
  const { slices, without } = useMemo(() => {
    const objective = table.column("objective");
    if (!objective) return { slices: [], without: [] };
    const finite = rows.filter((row) => Number.isFinite(objective.values[row]!));
    const exact = makeAxis(objective, finite, "linear", experiment);
    const margin = (exact.high - exact.low) * 0.04;
    const y = { ...exact, low: exact.low - margin, high: exact.high + margin };
    const quality = qualityOfTrials(data!);
    const marked = selected.size === 0 ? new Uint32Array()
      : finite.filter((row) => selected.has(table.trial(row)));
    const has = (column: Column) => finite.some((row) => !Number.isNaN(column.values[row]!));
    return {
      slices: parameters.flatMap((column, i): Slice[] => (has(column) ? [{
        x: makeAxis(column, finite, defaultScale(column.name, experiment), experiment),
        y, rows: finite, quality, model: models.value?.[i] ?? null, selected: marked,
      }] : [])),
      without: parameters.filter((one) => !has(one)).map((one) => one.name.slice(6)),
    };
  }, [data!.version, rows, models.value, names, [...selected].join()]);
  const few = models.value?.find((one) => one?.basis.tooFew)?.basis.tooFew;
  const any = models.value?.some((one) => one !== null && one.mean.length > 0);
  return (
    <Panel
      title={`${metric} over each parameter`}
      image={slices.length > 0}
      shown={shownOf(rows.length, data)}
      command={plotCommand(key, "slice", ...(without.length === 0 && omission === "" ? []
        : slices.flatMap((one) => ["-p", one.x.column.name.slice(6)])))}
      commandNote={plotNote()}
      summary={(omission !== "" ? `Pictures of ${omission}`
        : `${plural(slices.length, "picture")}, one for each parameter that varies`) +
        (without.length > 0 ? `; no trial shown with a result has ${eitherOf(without)}` : "")}
      tools={
        <label>
          <input
            type="checkbox"
            checked={withModel}
            onChange={(event) => setParams({ model: event.currentTarget.checked ? "" : "off" })}
          />
          with the model
        </label>
      }
      table={() => ({
        columns: ["trial", ...parameters.map((one) => one.name.slice(6)), metric],
        rows: Array.from(rows, (row) => [
          table.trial(row), ...parameters.map((one) => word(String(one.at(row) ?? "–"))),
          short(table.values("objective")[row]),
        ]),
      })}
    >
      {slices.length === 0 ? (
        <Empty title={parameters.length === 0 ? "No parameter varies yet"
          : rows.length === 0 ? "No trial meets this filter" : "No trial shown has a result"} />
      ) : (
        <>
          {few && <p class="hint">The model says nothing yet: {few}</p>}
          {any && (
            <p class="hint">
              Line and band: the objective averaged over all other parameters, as a model sees it,
              and where it lies with 90 % probability.
              {isFiltered() && " They are of all trials: the filter does not change them."}
            </p>
          )}
          {rows.length > MANY && (
            <p class="hint">
              {count(rows.length)} trials in {WIDTH} × {HEIGHT} pixels: those in the same pixel are
              one dot of their mean colour, the more the darker.
            </p>
          )}
          {omission !== "" && <p class="hint">{omission}.</p>}
          {without.length > 0 && (
            <p class="hint">No trial shown with a result has {eitherOf(without)}.</p>
          )}
          <div class="small-charts">
            {slices.map((slice) => (
              <OneSlice key={slice.x.column.name} slice={slice} metric={metric} />
            ))}
          </div>
        </>
      )}
    </Panel>
  );
}
