// The picture of two parameters at once: a cell a pair of values, and a dot a trial.
import type { GridAxis, PartialDependence } from "../api/analysis.js";
import { short, word } from "../format.js";
import { VIRIDIS, shade } from "../raster.js";
import { colour } from "../theme.js";
import { fitted, within } from "../ui/fit.js";

export const [LEFT, RIGHT, BOTTOM, TOP] = [84, 8, 34, 8];
export const HEIGHT = 360;

export interface Dot {
  x: number; // in cells from the left
  y: number; // in cells from the bottom
  selected: boolean;
}

export interface Drawn {
  model: PartialDependence;
  dots: Dot[];
  maximize: boolean;
}

interface Cells {
  x: GridAxis;
  y: GridAxis;
  width: number; // of a cell, in pixels
  height: number;
}

export function cellsOf(model: PartialDependence, width: number): Cells {
  const [x, y] = model.axes as [GridAxis, GridAxis];
  return {
    x, y, width: (width - LEFT - RIGHT) / x.values.length,
    height: (HEIGHT - BOTTOM - TOP) / y.values.length,
  };
}

// From the least of the means to the greatest.
export function boundsOf(model: PartialDependence): [low: number, high: number] {
  const means = model.mean.filter((one) => !Number.isNaN(one));
  return [Math.min(...means), Math.max(...means)];
}

// Its band is wider than all the differences that it shows.
function isUnknown(model: PartialDependence, at: number): boolean {
  const [low, high] = boundsOf(model);
  return model.high[at]! - model.low[at]! > (high - low || 1);
}

export interface Names {
  x: string;
  y: string;
  metric: string;
}

// What the cell at a place of the picture says; null beside the cells.
export function wordsAt(
  model: PartialDependence, names: Names, width: number, [left, top]: [number, number],
): string | null {
  const cells = cellsOf(model, width);
  const i = Math.floor((left - LEFT) / cells.width);
  const j = Math.floor((HEIGHT - BOTTOM - top) / cells.height);
  const [x, y] = [cells.x.values[i], cells.y.values[j]];
  if (x === undefined || y === undefined) return null;
  const at = i * cells.y.values.length + j;
  const point = `${names.x} ${valueText(x)}, ${names.y} ${valueText(y)}\n`;
  if (Number.isNaN(model.mean[at])) return `${point}no trial can have both`;
  return point +
    `${names.metric} ${short(model.mean[at])}\n` +
    `from ${short(model.low[at])} to ${short(model.high[at])} with 90 % probability` +
    (isUnknown(model, at) ? "\nthe model does not know" : "");
}

export function drawCells(context: CanvasRenderingContext2D, drawn: Drawn, width: number): void {
  const { model } = drawn;
  const cells = cellsOf(model, width);
  const [low, high] = boundsOf(model);
  const spread = high - low || 1;
  const hatch = colour("surface");
  const n = cells.y.values.length;
  for (let at = 0; at < model.mean.length; ++at) {
    if (Number.isNaN(model.mean[at])) continue;
    const share = (model.mean[at]! - low) / spread;
    const [r, g, b] = shade(VIRIDIS, drawn.maximize ? share : 1 - share);
    const x = LEFT + Math.floor(at / n) * cells.width;
    const y = HEIGHT - BOTTOM - ((at % n) + 1) * cells.height;
    context.fillStyle = `rgb(${r} ${g} ${b})`;
    context.fillRect(x, y, cells.width + 0.5, cells.height + 0.5);
    if (model.high[at]! - model.low[at]! <= spread) continue;
    context.strokeStyle = hatch;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, y + cells.height);
    context.lineTo(x + cells.width, y);
    context.stroke();
  }
  drawDots(context, drawn, cells);
}

function drawDots(context: CanvasRenderingContext2D, drawn: Drawn, cells: Cells): void {
  const [ink, surface, best] = [colour("ink"), colour("surface"), colour("best")];
  for (const dot of drawn.dots) {
    const [x, y] = [LEFT + dot.x * cells.width, HEIGHT - BOTTOM - dot.y * cells.height];
    context.fillStyle = dot.selected ? best : ink;
    context.strokeStyle = dot.selected ? ink : surface;
    context.lineWidth = dot.selected ? 2 : 1;
    context.beginPath();
    context.arc(x, y, dot.selected ? 5 : 2.5, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
  }
}

function valueText(text: string): string {
  const number = Number(text);
  return text.trim() === "" || Number.isNaN(number) ? word(text)
    : short(Number(number.toPrecision(3)));
}

export function drawTicks(context: CanvasRenderingContext2D, drawn: Drawn, width: number): void {
  const { x: ax, y: ay, width: cell } = cellsOf(drawn.model, width);
  context.fillStyle = colour("dim");
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "center";
  const every = (n: number, most: number) => Math.max(1, Math.ceil(n / most));
  const step = every(ax.values.length, Math.max(2, Math.min(6, Math.floor((width - LEFT) / 60))));
  ax.values.forEach((value, i) => {
    if (i % step !== 0) return;
    const text = fitted(context, valueText(value), step * cell - 6);
    const x = within(LEFT + (i + 0.5) * cell, context.measureText(text).width, [0, width]);
    context.fillText(text, x, HEIGHT - BOTTOM + 16);
  });
  context.textAlign = "right";
  ay.values.forEach((value, j) => {
    if (j % every(ay.values.length, 7) !== 0) return;
    const y = HEIGHT - BOTTOM - ((j + 0.5) / ay.values.length) * (HEIGHT - BOTTOM - TOP);
    context.fillText(fitted(context, valueText(value), LEFT - 10), LEFT - 6, y + 4);
  });
}
