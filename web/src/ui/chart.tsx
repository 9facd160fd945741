// A picture of lines and points by uPlot, in the page's colours; drawn again when its size, its
// data or the colours change. What is specific to a picture is drawn by its own hooks.
import uPlot from "uplot";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { short } from "../format.js";
import { logLabels, logSplits } from "../log_ticks.js";
import { colour, colours } from "../theme.js";

export interface Point {
  text: string;
  open?: () => void;
}

export interface ChartProps {
  data: uPlot.AlignedData;
  // Everything but size, axes' colours and hooks of this file. Made again when `form` changes.
  options: () => Partial<uPlot.Options> & { series: uPlot.Series[] };
  form: string;
  height?: number;
  label: string; // says what is to be seen
  x?: string; // names of the axes
  y?: string;
  at?: (u: uPlot, left: number, top: number) => Point | null; // what is under the pointer
  children?: ComponentChildren;
}

// Between trials and between steps there is nothing.
const COUNTED = ["trial", "step"];
const WHOLE = Array.from({ length: 12 }, (_, i) => 10 ** i).flatMap((n) => [n, 2 * n, 5 * n]);

const LOGARITHMIC: Partial<uPlot.Axis> = {
  splits: (_u, _axis, low, high) => logSplits(low, high),
  filter: (u, splits, axis, space) =>
    logLabels(splits, space, (value) => u.valToPos(value, u.axes[axis]!.scale!)),
};

function axis(label: string | undefined, x: boolean, log: boolean): uPlot.Axis {
  return {
    ...(log ? LOGARITHMIC : {}),
    stroke: () => colour("dim"),
    grid: { stroke: () => colour("line"), width: 1 },
    ticks: { stroke: () => colour("line"), width: 1, size: 5 },
    font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif",
    ...(label === undefined ? {} : { label, labelSize: x ? 20 : 18, labelGap: 2 }),
    size: x ? 32 : 58,
    gap: 5,
    ...(label !== undefined && COUNTED.includes(label) ? { incrs: WHOLE } : {}),
    values: (_u, splits) => splits.map((v) => (v === null ? "" : short(v))),
  };
}

export function baseOptions(props: ChartProps, width: number): uPlot.Options {
  const own = props.options();
  const isLog = (scale: string) => own.scales?.[scale]?.distr === 3;
  return {
    width,
    height: props.height ?? 300,
    legend: { show: false },
    padding: [10, 28, 0, 0], // the half of 1.2345e+7 at the right end
    axes: [axis(props.x, true, isLog("x")), axis(props.y, false, isLog("y"))],
    ...own,
    cursor: { points: { show: false }, drag: { x: true, y: false }, ...own.cursor },
  };
}

export function Chart(props: ChartProps) {
  const root = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const [tip, setTip] = useState<{ left: number; top: number; point: Point } | null>(null);
  useEffect(() => {
    const box = root.current!;
    const width = () => Math.max(200, Math.floor(box.clientWidth));
    const made = new uPlot(baseOptions(latest.current, width()), latest.current.data, box);
    chart.current = made;
    const resized = new ResizeObserver(() => {
      if (width() !== made.width) made.setSize({ width: width(), height: made.height });
    });
    resized.observe(box);
    return () => {
      resized.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [props.form, props.height]);
  useEffect(() => chart.current?.setData(props.data), [props.data]);
  const tint = colours.value;
  useEffect(() => chart.current?.redraw(false, true), [tint]);
  const find = (event: PointerEvent | MouseEvent) => {
    const u = chart.current;
    const over = u?.over.getBoundingClientRect();
    if (!u || !over || !latest.current.at) return null;
    const left = event.clientX - over.left;
    const top = event.clientY - over.top;
    const point = latest.current.at(u, left, top);
    return point && { left: left + u.over.offsetLeft, top: top + u.over.offsetTop, point };
  };
  return (
    <div
      class="chart"
      ref={root}
      role="img"
      aria-label={props.label}
      onPointerMove={(event) => setTip(find(event))}
      onPointerLeave={() => setTip(null)}
      onClick={(event) => find(event)?.point.open?.()}
    >
      {tip && (
        <div
          class="tip"
          style={{
            left: `${tip.left + 14}px`,
            top: `${tip.top + 10}px`,
            ...(tip.left > (root.current?.clientWidth ?? 0) / 2
              ? { left: "auto", right: `${(root.current?.clientWidth ?? 0) - tip.left + 14}px` }
              : {}),
          }}
        >
          {tip.point.text}
        </div>
      )}
      {props.children}
    </div>
  );
}

// The nearest of the points to a place, within so many pixels; -1 if none is.
export function nearest(
  u: uPlot,
  place: { left: number; top: number },
  points: { x: ArrayLike<number>; y: ArrayLike<number>; rows: ArrayLike<number> },
): number {
  const reach = 14;
  let [found, least] = [-1, reach * reach];
  const from = u.posToVal(place.left - reach, "x");
  const to = u.posToVal(place.left + reach, "x");
  for (let i = 0; i < points.rows.length; ++i) {
    const row = points.rows[i]!;
    const x = points.x[row]!;
    if (!(x >= from && x <= to)) continue;
    const dx = u.valToPos(x, "x") - place.left;
    const dy = u.valToPos(points.y[row]!, "y") - place.top;
    const distance = dx * dx + dy * dy;
    if (distance < least) [found, least] = [row, distance];
  }
  return found;
}

export type Mark = "dot" | "ring" | "cross" | "half" | "diamond" | "triangle";

// One mark on a canvas, whose shape says what its colour says.
export function drawMark(
  context: CanvasRenderingContext2D,
  mark: Mark,
  at: { x: number; y: number; size: number },
): void {
  const { x, y, size } = at;
  context.beginPath();
  if (mark === "cross") {
    context.moveTo(x - size, y - size);
    context.lineTo(x + size, y + size);
    context.moveTo(x + size, y - size);
    context.lineTo(x - size, y + size);
    context.stroke();
    return;
  }
  if (mark === "diamond" || mark === "triangle") {
    const [wide, low] = mark === "diamond" ? [1.3, 0] : [1.2, size * 0.9];
    context.moveTo(x, y - size * 1.3);
    context.lineTo(x + size * wide, y + low);
    if (mark === "diamond") context.lineTo(x, y + size * 1.3);
    context.lineTo(x - size * wide, y + low);
    context.closePath();
    if (mark === "diamond") context.fill();
    else context.stroke();
    return;
  }
  if (mark === "half") {
    context.rect(x - size * 0.8, y - size * 0.8, size * 1.6, size * 1.6);
    context.fill();
    return;
  }
  context.arc(x, y, size, 0, 2 * Math.PI);
  if (mark === "ring") context.stroke();
  else context.fill();
}
