// Parallel coordinates: one line a trial, drawn as densities by a worker. Drag along an axis to
// choose a range, which becomes a part of the filter of all panels.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Axis, Scale } from "../axes.js";
import {
  defaultScale, makeAxis, nameOfColumn, positionsOf, qualityOfTrials, valueAt,
} from "../axes.js";
import type { Column } from "../api/columns.js";
import { varying } from "../api/columns.js";
import type { Brush } from "../brush.js";
import { count, short, word } from "../format.js";
import { chooseAlong, plotCommand, plotNote, shownOf, useShared } from "../pages/context.js";
import type { RasterTask } from "../raster.js";
import { VIRIDIS, heightAt } from "../raster.js";
import { draw } from "../raster_client.js";
import { maximizes } from "../state.js";
import { colour, colours } from "../theme.js";
import { Menu } from "../ui/menu.js";
import { Empty, Panel } from "../ui/panel.js";
import { Ramp } from "../ui/ramp.js";
import { param, setParams } from "../url.js";
import type { Place, Range } from "./parallel_axes.js";
import { Axes, INNER, SIDE, TOP, footOf, heightOf } from "./parallel_axes.js";

function hexColour(name: string): [number, number, number] {
  const text = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const value = parseInt(text.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

// The dark end of the colours would not be seen on a dark page, nor the light one on a light page.
export function paletteFor(): [number, number, number][] {
  const dark = hexColour("surface")[0] < 128;
  return dark ? VIRIDIS.slice(2) : VIRIDIS.slice(0, 8);
}

function axesOf(
  columns: Column[], rows: Uint32Array, scales: Map<string, Scale>,
  shared: ReturnType<typeof useShared>,
): Axis[] {
  return columns.map((column) => {
    const scale = scales.get(column.name) ?? defaultScale(column.name, shared.experiment);
    return makeAxis(column, rows, scale, shared.experiment);
  });
}

function parseScales(text: string): Map<string, Scale> {
  return new Map(text.split(",").filter(Boolean).map((one) => {
    const colon = one.lastIndexOf(":");
    return [decodeURIComponent(one.slice(0, colon)), one.slice(colon + 1) as Scale];
  }));
}

function printScales(scales: Map<string, Scale>): string {
  return [...scales].map(([name, scale]) => `${encodeURIComponent(name)}:${scale}`).join(",");
}

// Of the categories those within the range, or nearly; of a click the nearest.
function wordsIn(axis: Axis, low: number, high: number): string[] {
  const [from, to] = [low * axis.high, high * axis.high];
  const found = axis.column.dictionary.filter((_, i) => i >= from - 0.25 && i <= to + 0.25);
  const nearest = axis.column.dictionary[Math.round((from + to) / 2)];
  return found.length > 0 || nearest === undefined ? found : [nearest];
}

// What a range of an axis chooses; null is no choice.
export function brushOf(axis: Axis, range: Range): Brush | null {
  const [low, high] = [Math.min(range.from, range.to), Math.max(range.from, range.to)];
  const column = axis.column.name;
  if (axis.scale === "category") return { column, words: wordsIn(axis, low, high) };
  if (high - low <= 0.015) return null;
  // All of the axis: those that have a value.
  if (low <= 0 && high >= 1) return { column, low: axis.low };
  return {
    column, ...(low > 0 ? { low: valueAt(axis, low) } : {}),
    ...(high < 1 ? { high: valueAt(axis, high) } : {}),
  };
}

function usePositions(axes: Axis[]): Float32Array[] {
  const { data } = useShared();
  const { rows } = data!.table;
  const id = axes
    .map((axis) => `${axis.column.name} ${axis.scale} ${axis.low} ${axis.high}`).join();
  return useMemo(() => axes.map((axis) => positionsOf(axis, rows)), [id, data!.version]);
}

const MOST_SELECTED = 200;

// Over the picture, each line of the selected trials by itself.
function drawSelected(canvas: HTMLCanvasElement, task: RasterTask, rows: number[]): void {
  const context = canvas.getContext("2d")!;
  const scale = task.width / canvas.clientWidth;
  for (const [tint, width] of [["surface", 5], ["best", 2.5]] as const) {
    context.strokeStyle = colour(tint);
    context.lineWidth = width * scale;
    for (const row of rows.slice(0, MOST_SELECTED)) {
      context.beginPath();
      task.positions.forEach((axis, i) => {
        const y = heightAt(task, axis[row]!);
        if (!Number.isNaN(y)) context.lineTo(task.x[i]!, y);
      });
      context.stroke();
    }
  }
}

interface Drawn {
  task: RasterTask;
  picture: ImageData;
  took: number;
}

function useRaster(positions: Float32Array[], place: Place, chosen: Uint8Array) {
  const { data, selected } = useShared();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const tint = colours.value;
  const { width, x } = place;
  const quality = useMemo(() => qualityOfTrials(data!), [data!.version]);
  const foot = footOf(place);
  useEffect(() => {
    if (width === 0 || positions.length < 2) return;
    let current = true;
    const scale = Math.min(devicePixelRatio, 2);
    const began = performance.now();
    const task = {
      width: Math.round(width * scale), height: Math.round((INNER + foot) * scale),
      foot: foot * scale, positions, x: x.map((at) => at * scale), quality, chosen,
      colours: paletteFor(), faint: hexColour("dim"),
    };
    void draw(task).then((picture) => {
      if (current) setDrawn({ task, picture, took: performance.now() - began });
    });
    return () => {
      current = false;
    };
  }, [positions, chosen, width, foot, tint, x.join()]);
  useEffect(() => {
    if (!drawn) return;
    const element = canvas.current!;
    element.width = drawn.picture.width;
    element.height = drawn.picture.height;
    element.getContext("2d")!.putImageData(drawn.picture, 0, 0);
    const rows = [...selected].flatMap((trial) => data!.table.rowOf(trial) ?? []);
    drawSelected(element, drawn.task, rows);
  }, [drawn, [...selected].join()]);
  return { canvas, took: drawn?.took ?? 0 };
}

// Colours are by rank: the ends are the worst and the best of all trials.
function Ends() {
  const { data, experiment } = useShared();
  const { table } = data!;
  const [worst, best] = useMemo(() => {
    let [low, high] = [Infinity, -Infinity];
    for (const value of table.values("objective").subarray(0, table.rows)) {
      if (Number.isFinite(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
    }
    if (low > high) return [NaN, NaN];
    return maximizes(experiment) ? [low, high] : [high, low];
  }, [data!.version]);
  return <><Ramp worst={worst!} best={best!} /><span>colours by rank</span></>;
}

interface PictureProps {
  axes: Axis[];
  chosen: Uint8Array;
  label: string;
  onScale: (axis: Axis) => void;
}

function Picture(props: PictureProps) {
  const { data } = useShared();
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(() => setWidth(box.current?.clientWidth ?? 0));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  const { axes } = props;
  const least = Math.max(width, axes.length * 90 + SIDE);
  const positions = usePositions(axes);
  const lanes = useMemo(() => positions.map((one) => one.some(Number.isNaN)), [positions]);
  const x = axes.map((_, i) => SIDE + (i * (least - 2 * SIDE)) / Math.max(1, axes.length - 1));
  const place = { width: least, x, lanes };
  const { canvas, took } = useRaster(positions, place, props.chosen);
  return (
    <>
      <div class="parallel" ref={box} tabIndex={0} role="group" aria-label={props.label}>
        <div style={{ width: `${least}px`, height: `${heightOf(place)}px` }}>
          <canvas
            ref={canvas}
            role="img"
            aria-label={props.label}
            data-took={Math.round(took)}
            style={{ top: `${TOP}px`, width: `${least}px`, height: `${INNER + footOf(place)}px` }}
          />
          <Axes
            axes={axes}
            place={place}
            onScale={props.onScale}
            onRange={(axis, range) =>
              chooseAlong(data!, axis.column.name, brushOf(axis, range), true)}
            onNone={(axis) =>
              chooseAlong(data!, axis.column.name, { column: axis.column.name, none: true }, true)}
          />
        </div>
      </div>
      <div class="legend">
        <Ends />
        <span>grey: left out by the filter</span>
        {lanes.includes(true) && <span>none: without the parameter, or without a result</span>}
        <span>drag along an axis to choose a range; click it to take that back</span>
      </div>
    </>
  );
}

const SCALES: Scale[] = ["linear", "log", "quantile"];

export function Parallel() {
  const shared = useShared();
  const { experiment, data, rows, key } = shared;
  const table = data!.table;
  const scales = parseScales(param("scales"));
  const best = Number(param("best") || 100);
  const every = useMemo(() => Uint32Array.from({ length: table.rows }, (_, i) => i), [data]);
  const parameters = table.columns.filter((one) => one.name.startsWith("param."));
  const shownByDefault = every.length < 2 ? parameters : varying(parameters, every);
  const hidden = new Set(param("hide").split(",").filter(Boolean).map(decodeURIComponent));
  const columns = [
    ...(param("axes") === "all" ? parameters : shownByDefault)
      .filter((one) => !hidden.has(one.name)),
    ...(table.column("objective") ? [table.column("objective")!] : []),
  ];
  const axes = useMemo(
    () => axesOf(columns, every, scales, shared),
    [data!.version, param("scales"), columns.map((one) => one.name).join()],
  );
  const chosen = useMemo(() => {
    const marks = new Uint8Array(table.rows);
    let kept = Array.from(rows);
    if (best < 100) {
      const objective = table.values("objective");
      const sign = maximizes(experiment) ? -1 : 1;
      kept = kept.filter((row) => Number.isFinite(objective[row]!));
      kept.sort((a, b) => sign * (objective[a]! - objective[b]!));
      kept = kept.slice(0, Math.max(1, Math.ceil((kept.length * best) / 100)));
    }
    for (const row of kept) marks[row] = 1;
    return marks;
  }, [rows, best, data!.version]);
  const shown = chosen.reduce((sum, one) => sum + one, 0);
  const onScale = (axis: Axis) => {
    if (axis.scale === "category") return;
    const next = SCALES[(SCALES.indexOf(axis.scale as Scale) + 1) % SCALES.length]!;
    const able = next === "log" && axis.low <= 0 ? "quantile" : next;
    setParams({ scales: printScales(new Map([...scales, [axis.column.name, able]])) });
  };
  const toggle = (name: string) => {
    if (!hidden.delete(name)) hidden.add(name);
    setParams({ hide: [...hidden].map(encodeURIComponent).join(",") });
  };
  const label = `Parallel coordinates of ${count(shown)} trials over ` +
    axes.map((axis) => axis.name).join(", ");
  return (
    <Panel
      title="Parallel coordinates"
      shown={best < 100 ? `the best ${best} %: ${count(shown)} of ${count(table.rows)} trials`
        : shownOf(rows.length, data)}
      image
      summary={label}
      command={plotCommand(key, "parallel")}
      commandNote={plotNote()}
      table={() => ({
        columns: ["trial", ...axes.map((axis) => axis.name)],
        rows: Array.from(rows).filter((row) => chosen[row] === 1).map((row) => [
          table.trial(row), ...axes.map((axis) => {
            const value = axis.column.at(row);
            return typeof value === "number" ? short(value) : word(value ?? "–");
          }),
        ]),
      })}
      tools={
        <>
          <label>
            Best {best} %
            <input
              type="range"
              min={1}
              max={100}
              value={best}
              onInput={(event) => setParams({
                best: event.currentTarget.value === "100" ? "" : event.currentTarget.value,
              })}
            />
          </label>
          <Menu
            label="Axes"
            class=""
            keepOpen
            items={[
              ...shownByDefault.map((one) => ({
                name: nameOfColumn(one.name, experiment),
                checked: !hidden.has(one.name),
                act: () => toggle(one.name),
              })),
              {
                name: "also those that do not vary",
                checked: param("axes") === "all",
                act: () => setParams({ axes: param("axes") === "all" ? "" : "all" }),
              },
            ]}
          >
            Axes ▾
          </Menu>
        </>
      }
    >
      {table.rows === 0 || axes.length < 2 ? (
        <Empty title={table.rows === 0 ? "No trials yet" : "No parameter varies yet"} />
      ) : (
        <Picture axes={axes} chosen={chosen} onScale={onScale} label={label} />
      )}
    </Panel>
  );
}
