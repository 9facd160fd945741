// What the picture of two objectives draws on its canvas, and the same in words. Axes have the real
// values, whichever way is better.
import type uPlot from "uplot";
import type { TrialColumns } from "../api/columns.js";
import { count, plural, short } from "../format.js";
import type { Constraint, Objective } from "../objectives.js";
import { brokenWords } from "../objectives.js";
import type { Standings } from "../pareto.js";
import { Standing, stepLine } from "../pareto.js";
import { colour } from "../theme.js";
import type { Mark } from "../ui/chart.js";
import { drawMark } from "../ui/chart.js";

// So many marks would hide each other.
const MANY = 4000;

const LOOKS: Partial<Record<Standing, [Mark, string]>> = {
  [Standing.Broken]: ["triangle", "bad"],
  [Standing.Kept]: ["dot", "accent"],
  [Standing.Front]: ["diamond", "best"],
};
const WORDS: Partial<Record<Standing, string>> = {
  [Standing.Broken]: "breaks a constraint",
  [Standing.Kept]: "not on the front",
  [Standing.Front]: "on the front",
};

export interface Axes {
  x: Objective;
  y: Objective;
}

export interface Drawing {
  table: TrialColumns;
  rows: Uint32Array; // with a result, that are shown
  line: number[]; // rows of the front of these two objectives alone, best x first
  axes: Axes;
  standings: Standings;
  selected: Set<number>;
  picked: number;
}

function drawLine(u: uPlot, drawing: Drawing): void {
  const { table, line, axes } = drawing;
  const [xs, ys] = [table.values(axes.x.column), table.values(axes.y.column)];
  const { left, top, width, height } = u.bbox;
  const worst = {
    x: axes.x.maximize ? left : left + width, y: axes.y.maximize ? top + height : top,
  };
  const front = line.map((row): [number, number] =>
    [u.valToPos(xs[row]!, "x", true), u.valToPos(ys[row]!, "y", true)]);
  u.ctx.strokeStyle = colour("best");
  u.ctx.lineWidth = 2 * devicePixelRatio;
  u.ctx.beginPath();
  for (const [x, y] of stepLine(front, worst)) u.ctx.lineTo(x, y);
  u.ctx.stroke();
}

function drawMarks(u: uPlot, drawing: Drawing, only: Standing): void {
  const { table, rows, axes, standings } = drawing;
  const [mark, tint] = LOOKS[only]!;
  const [xs, ys] = [table.values(axes.x.column), table.values(axes.y.column)];
  const context = u.ctx;
  const scale = devicePixelRatio;
  const front = only === Standing.Front;
  const marks = front ? standings.front.length : rows.length;
  const many = marks > MANY;
  const size = (many ? 1.2 : marks > 400 ? 2.6 : 3.6) * (front ? 1.3 : 1) * scale;
  context.fillStyle = context.strokeStyle = colour(tint);
  context.lineWidth = 1.6 * scale;
  context.globalAlpha = only === Standing.Kept && !many ? 0.75 : 1;
  for (const row of rows) {
    if (standings.of[row] !== only) continue;
    const [x, y] = [u.valToPos(xs[row]!, "x", true), u.valToPos(ys[row]!, "y", true)];
    if (many) context.fillRect(x - size, y - size, 2 * size, 2 * size);
    else drawMark(context, mark, { x, y, size });
  }
  context.globalAlpha = 1;
}

function drawRings(u: uPlot, drawing: Drawing): void {
  const { table, rows, axes, selected, picked } = drawing;
  const [xs, ys] = [table.values(axes.x.column), table.values(axes.y.column)];
  const numbers = table.values("trial");
  const context = u.ctx;
  const scale = devicePixelRatio;
  context.lineWidth = 1.8 * scale;
  for (const row of rows) {
    const trial = numbers[row]!;
    const marks: [boolean, string, number][] = [
      [selected.has(trial), "best", 8], [trial === picked, "ink", 11],
    ];
    for (const [there, tint, size] of marks) {
      if (!there) continue;
      context.strokeStyle = colour(tint);
      context.beginPath();
      const [x, y] = [u.valToPos(xs[row]!, "x", true), u.valToPos(ys[row]!, "y", true)];
      context.arc(x, y, size * scale, 0, 2 * Math.PI);
      context.stroke();
    }
  }
}

export function draw(u: uPlot, drawing: Drawing): void {
  const { left, top, width, height } = u.bbox;
  u.ctx.save();
  u.ctx.beginPath();
  u.ctx.rect(left, top, width, height);
  u.ctx.clip();
  drawMarks(u, drawing, Standing.Broken);
  drawMarks(u, drawing, Standing.Kept);
  drawLine(u, drawing);
  drawMarks(u, drawing, Standing.Front);
  drawRings(u, drawing);
  u.ctx.restore();
}

// ---- words --------------------------------------------------------------------------------------

export function countsOf(standings: Standings, rows: Uint32Array): Record<Standing, number> {
  const counts = [0, 0, 0, 0, 0];
  for (const row of rows) ++counts[standings.of[row]!]!;
  return counts as unknown as Record<Standing, number>;
}

// "3 trials have no result: 2 run or wait, 1 ended without one"; "" where all have theirs.
export function missingWords(counts: Record<Standing, number>): string {
  const [open, without] = [counts[Standing.Open], counts[Standing.Without]];
  if (open + without === 0) return "";
  const parts = [
    open > 0 && `${count(open)} ${open === 1 ? "runs or waits" : "run or wait"}`,
    without > 0 && `${count(without)} ended without one`,
  ].filter(Boolean).join(", ");
  return `${plural(open + without, "trial")} ${open + without === 1 ? "has" : "have"} no result: ` +
    `${parts}.`;
}

function spanOf(objective: Objective, table: TrialColumns, front: number[]): string {
  const values = front.map((row) => table.values(objective.column)[row]!);
  const low = values.reduce((a, b) => Math.min(a, b));
  const high = values.reduce((a, b) => Math.max(a, b));
  return `${objective.metric} from ${short(low)} to ${short(high)}`;
}

export function summaryOf(drawing: Drawing, counts: Record<Standing, number>): string {
  const { standings: { front }, table, axes } = drawing;
  const { [Standing.Broken]: broken, [Standing.Kept]: kept } = counts;
  const results = plural(broken + kept + counts[Standing.Front], "trial");
  return [
    front.length === 0 ? `No trial is on the front; ${results} with a result are shown`
      : `${plural(counts[Standing.Front], "trial")} on the front of ${results} with a result; ` +
        `on the front ${spanOf(axes.x, table, front)}, ${spanOf(axes.y, table, front)}`,
    ...(broken > 0 ? [`${count(broken)} ${broken === 1 ? "breaks" : "break"} a constraint`] : []),
  ].join("; ");
}

export function wordsOf(drawing: Drawing, row: number, constraints: Constraint[]): string {
  const { table, axes, standings } = drawing;
  const broken = brokenWords(constraints, table, row);
  return [
    `trial ${table.trial(row)}, ${WORDS[standings.of[row] as Standing] ?? ""}`,
    ...[axes.x, axes.y].map((one) => `${one.metric} ${short(table.values(one.column)[row])}`),
    ...(broken === "" ? [] : [`breaks ${broken}`]),
  ].join("\n");
}
