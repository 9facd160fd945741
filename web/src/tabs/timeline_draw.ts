// Draws the lanes of a timeline on a canvas: each attempt with its shape where there is room, else
// by the pixel.
import type { Density, DensityTask, Lanes, Rgb } from "../lanes.js";
import { density, laneOfRow, lanesWithin } from "../lanes.js";
import { clock } from "../format.js";
import { colour } from "../theme.js";

export const LANE = 22;
export const LEFT = 110; // of the names
export const TOP = 26; // of the times
export const RIGHT = 12;
export const MOST_EACH = 250; // parts of a lane that are drawn one by one

export interface View {
  from: number;
  to: number;
  width: number;
}

export function position(view: View, time: number): number {
  return LEFT + ((time - view.from) / (view.to - view.from)) * (view.width - LEFT - RIGHT);
}

export function timeAt(view: View, x: number): number {
  return view.from + ((x - LEFT) / (view.width - LEFT - RIGHT)) * (view.to - view.from);
}

export function hexOf(name: string): Rgb {
  const value = parseInt(colour(name).slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

export function prepared(canvas: HTMLCanvasElement, view: View): CanvasRenderingContext2D {
  const scale = devicePixelRatio;
  canvas.width = view.width * scale;
  canvas.height = canvas.clientHeight * scale;
  const context = canvas.getContext("2d")!;
  context.scale(scale, scale);
  context.font = "12px system-ui, sans-serif";
  drawTimes(context, view, canvas.clientHeight);
  return context;
}

// 1, 2, 5, 10, 15, 30 of seconds, minutes, hours …
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400,
  172800, 604800, 2592000].map((s) => s * 1000);

function drawTimes(context: CanvasRenderingContext2D, view: View, height: number): void {
  const step = STEPS.find((one) => ((view.to - view.from) / one) * 80 < view.width - LEFT) ??
    STEPS.at(-1)!;
  context.fillStyle = colour("dim");
  context.strokeStyle = colour("line");
  context.textAlign = "center";
  for (let time = Math.ceil(view.from / step) * step; time <= view.to; time += step) {
    const x = Math.round(position(view, time)) + 0.5;
    context.beginPath();
    context.moveTo(x, TOP);
    context.lineTo(x, height);
    context.stroke();
    const text = step >= 86_400_000 ? new Date(time).toDateString().slice(4, 10)
      : clock(time).slice(0, step < 60_000 ? undefined : -3) || clock(time);
    context.fillText(text, x, 16);
  }
}

const TINTS: Record<string, string> = { wait: "wait", lost: "lost" };
const SIGNS: Record<string, string> = {
  bolt: "⚡", cross: "✕", half: "◐", slash: "⊘", bars: "⏸", play: "▸",
};

export function tintOf(tone: string): string {
  return TINTS[tone] ?? tone;
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

function hatch(context: CanvasRenderingContext2D, box: Box): void {
  context.save();
  context.clip();
  context.strokeStyle = colour("surface");
  context.globalAlpha = 0.28;
  context.lineWidth = 2;
  context.beginPath();
  for (let x = box.x - box.height; x < box.x + box.width; x += 7) {
    context.moveTo(x, box.y + box.height);
    context.lineTo(x + box.height, box.y);
  }
  context.stroke();
  context.restore();
}

interface Palette {
  wait: string;
  surface: string;
  ink: string;
  tones: string[]; // of each look
}

function drawPart(
  context: CanvasRenderingContext2D, palette: Palette, part: { lanes: Lanes; i: number },
  [view, y]: [View, number],
): void {
  const { parts } = part.lanes;
  const { i } = part;
  const [queued, from, to] = [parts.queued[i]!, parts.from[i]!, parts.to[i]!]
    .map((time) => position(view, time)) as [number, number, number];
  if (to < LEFT || queued > view.width) return;
  context.fillStyle = palette.wait;
  if (from > queued) context.fillRect(queued, y + LANE / 2 - 1, from - queued, 2);
  if (Number.isNaN(parts.table.number("start")[i]!)) return;
  context.fillStyle = palette.tones[parts.look[i]!]!;
  const box = { x: from, y: y + 4, width: Math.max(3, to - from - 1), height: LANE - 8 };
  context.beginPath();
  context.roundRect(box.x, box.y, box.width, box.height, 3);
  context.fill();
  if (box.width > 8 && parts.table.word("capacity", i) === "spot") hatch(context, box);
  // The end says by its shape what the colour says.
  const sign = SIGNS[parts.looks[parts.look[i]!]!.shape];
  if (!sign || box.width < 14) return;
  context.fillStyle = palette.surface;
  context.textAlign = "right";
  context.fillText(sign, box.x + box.width - 3, box.y + box.height - 3);
}

// The parts of a lane that are in sight; null where they are too many to draw each.
function partsInSight(lanes: Lanes, lane: number, view: View): number[] | null {
  const { start, items, parts } = lanes;
  const found: number[] = [];
  for (let at = start[lane]!; at < start[lane + 1]!; ++at) {
    const i = items[at]!;
    if (parts.to[i]! < view.from || parts.queued[i]! > view.to) continue;
    if (found.push(i) > MOST_EACH) return null;
  }
  return found;
}

export interface Scene {
  lanes: Lanes;
  view: View;
  scroll: number;
  selected: Set<number>; // trials
}

// Frames around the attempts of selected trials, of some lanes; `boxOf` is where a lane is drawn.
function drawSelected(
  context: CanvasRenderingContext2D, scene: Omit<Scene, "scroll">, [first, last]: [number, number],
  boxOf: (lane: number) => { y: number; height: number },
): void {
  const { lanes, view, selected } = scene;
  if (selected.size === 0) return;
  const { table, queued, to } = lanes.parts;
  const trial = table.number("trial");
  context.save();
  context.strokeStyle = colour("best");
  context.lineWidth = 2.5;
  for (let lane = first; lane < last; ++lane) {
    for (let at = lanes.start[lane]!; at < lanes.start[lane + 1]!; ++at) {
      const i = lanes.items[at]!;
      if (!selected.has(trial[i]!)) continue;
      const from = Math.max(LEFT, position(view, queued[i]!));
      const end = Math.min(view.width - RIGHT, position(view, to[i]!));
      if (end < LEFT || from > view.width - RIGHT) continue;
      const { y, height } = boxOf(lane);
      context.strokeRect(from - 1, y, Math.max(4, end - from + 1), height);
    }
  }
  context.restore();
}

function lanesInSight(canvas: HTMLCanvasElement, { lanes, scroll }: Scene): [number, number] {
  const last = Math.ceil((scroll + canvas.clientHeight) / LANE) + 1;
  return [Math.max(0, Math.floor(scroll / LANE)), Math.min(lanes.count, last)];
}

// The lanes in sight whose parts are too many to draw each.
export function denseLanes(canvas: HTMLCanvasElement, scene: Scene): number[] {
  const [first, last] = lanesInSight(canvas, scene);
  return Array.from({ length: Math.max(0, last - first) }, (_, i) => first + i)
    .filter((lane) => partsInSight(scene.lanes, lane, scene.view) === null);
}

// The lanes in sight, one by one; those whose parts are too many by their pictures in `rows`, and
// not before these are made.
export function drawLanes(
  canvas: HTMLCanvasElement, scene: Scene, rows: Map<number, OffscreenCanvas>,
): void {
  const { lanes, view, scroll } = scene;
  const context = prepared(canvas, view);
  const height = canvas.clientHeight;
  const palette: Palette = {
    wait: colour("wait"), surface: colour("surface"), ink: colour("ink"),
    tones: lanes.parts.looks.map((look) => colour(tintOf(look.tone))),
  };
  context.beginPath();
  context.rect(0, TOP, view.width, height - TOP);
  context.clip();
  const [first, last] = lanesInSight(canvas, scene);
  for (let lane = first; lane < last; ++lane) {
    const y = TOP + lane * LANE - scroll;
    const few = partsInSight(lanes, lane, view);
    for (const i of few ?? []) drawPart(context, palette, { lanes, i }, [view, y]);
    const row = few === null ? rows.get(lane) : undefined;
    context.imageSmoothingEnabled = false;
    if (row) context.drawImage(row, LEFT, y + 4, view.width - LEFT - RIGHT, LANE - 8);
    context.fillStyle = palette.surface;
    context.fillRect(0, y, LEFT - 4, LANE);
    context.fillStyle = palette.ink;
    context.textAlign = "right";
    context.fillText(lanes.name(lane), LEFT - 12, y + 15, LEFT - 16);
  }
  drawSelected(context, scene, [first, last],
    (lane) => ({ y: TOP + lane * LANE - scroll + 2, height: LANE - 4 }));
}

export function densityTask(
  lanes: Lanes, view: View, [first, last]: [number, number], height: number,
): DensityTask {
  return {
    lanes, first, last, from: view.from, to: view.to, height,
    width: Math.max(1, Math.floor(view.width - LEFT - RIGHT)),
    colours: lanes.parts.looks.map((look) => hexOf(tintOf(look.tone))), waiting: hexOf("wait"),
  };
}

export function pictureOf(task: DensityTask, found: Density): OffscreenCanvas {
  const canvas = new OffscreenCanvas(task.width, task.height);
  canvas.getContext("2d")!.putImageData(
    new ImageData(found.pixels, task.width, task.height), 0, 0);
  return canvas;
}

// All lanes at once: some to a row of pixels, or each some pixels high.
export interface Overview {
  task: DensityTask;
  found: Density;
  high: number; // of a row, in pixels
}

export function* overview(
  lanes: Lanes, view: View, height: number,
): Generator<void, Overview> {
  const [first, last] = yield* lanesWithin(lanes, view.from, view.to);
  const rows = Math.min(last - first, height);
  const task = densityTask(lanes, view, [first, last], rows);
  const high = Math.min(LANE, Math.floor(height / rows));
  return { task, found: yield* density(task), high };
}

export function drawOverview(
  canvas: HTMLCanvasElement, view: View, made: Overview, selected: Set<number>,
): void {
  const { task, found, high } = made;
  const context = prepared(canvas, view);
  context.imageSmoothingEnabled = false;
  context.drawImage(pictureOf(task, found), LEFT, TOP, task.width, task.height * high);
  context.fillStyle = colour("ink");
  context.textAlign = "right";
  const step = Math.max(1, Math.ceil(40 / high));
  for (let row = 0; row < task.height; row += step) {
    const text = task.lanes.name(laneOfRow(task, row));
    context.fillText(text, LEFT - 12, TOP + row * high + 11, LEFT - 16);
  }
  const { lanes, first, last, height } = task;
  const rowOf = (lane: number) => Math.floor(((lane - first) * height) / (last - first));
  drawSelected(context, { lanes, view, selected }, [first, last],
    (lane) => ({ y: TOP + rowOf(lane) * high - 1, height: Math.max(3, high + 1) }));
}
