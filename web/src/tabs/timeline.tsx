// Every attempt as a part of a lane: when it waited, where it ran, why it ended. One lane a trial,
// or one a node. Only what is in sight is drawn, so there may be any number of them.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { TimelineAttempt } from "../api/timeline.js";
import { readTimeline } from "../api/timeline.js";
import type { CauseLook } from "../cause.js";
import { lookOfCause } from "../cause.js";
import { clock, count, duration, money, plural } from "../format.js";
import { useChanges, useLoad, useNow } from "../load.js";
import { namespaceFlag, useShared } from "../pages/context.js";
import { currencyOf, isEnded } from "../state.js";
import { colour, colours } from "../theme.js";
import { FilterBar } from "../ui/filterbar.js";
import { Empty, Panel } from "../ui/panel.js";
import { Icon } from "../ui/state.js";
import { go, link, param, setParams } from "../url.js";

interface Part {
  attempt: TimelineAttempt;
  look: CauseLook;
  trial: number;
  queued: number; // ms since 1970; what came before its start
  from: number;
  to: number; // now, where it runs
}

interface Lane {
  name: string;
  parts: Part[];
}

const LANE = 22;
const LEFT = 110; // of the names
const TOP = 26; // of the times

function partsOf(attempts: TimelineAttempt[], now: number): Part[] {
  const before = new Map<number, number>();
  return attempts.map((attempt) => {
    const { trial } = attempt;
    const created = attempt.created || now;
    const from = attempt.start || now;
    const to = attempt.end || now;
    const queued = Math.min(from, before.get(trial) ?? created, created);
    before.set(trial, to);
    return { attempt, look: lookOfCause(attempt.state, attempt.cause), trial, queued, from, to };
  });
}

function lanesOf(parts: Part[], byNode: boolean): Lane[] {
  const lanes = new Map<string, Part[]>();
  for (const part of parts) {
    const name = byNode ? (part.attempt.node || "waits") : String(part.trial);
    const lane = lanes.get(name);
    if (lane) lane.push(part);
    else lanes.set(name, [part]);
  }
  const all = [...lanes].map(([name, own]) => ({ name, parts: own }));
  return byNode ? all.sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true })) : all;
}

interface View {
  from: number;
  to: number;
  width: number;
}

function position(view: View, time: number): number {
  return LEFT + ((time - view.from) / (view.to - view.from)) * (view.width - LEFT - 12);
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

function drawPart(context: CanvasRenderingContext2D, view: View, part: Part, y: number): void {
  const [queued, from, to] = [part.queued, part.from, part.to].map((t) => position(view, t));
  if (to! < LEFT || queued! > view.width) return;
  context.fillStyle = colour("wait");
  if (from! > queued!) context.fillRect(queued!, y + LANE / 2 - 1, from! - queued!, 2);
  if (Number.isNaN(part.attempt.start)) return;
  context.fillStyle = colour(TINTS[part.look.tone] ?? part.look.tone);
  const width = Math.max(3, to! - from! - 1);
  const spot = part.attempt.capacity === "spot";
  const [top, height] = [y + 4, LANE - 8];
  context.beginPath();
  context.roundRect(from!, top, width, height, 3);
  context.fill();
  if (spot && width > 8) {
    context.save();
    context.clip();
    context.strokeStyle = colour("surface");
    context.globalAlpha = 0.28;
    context.lineWidth = 2;
    context.beginPath();
    for (let x = from! - height; x < from! + width; x += 7) {
      context.moveTo(x, top + height);
      context.lineTo(x + height, top);
    }
    context.stroke();
    context.restore();
  }
  drawEnd(context, part, { x: from! + width, y: top, height, width });
}

// The end says by its shape what the colour says.
function drawEnd(
  context: CanvasRenderingContext2D,
  part: Part,
  box: { x: number; y: number; height: number; width: number },
): void {
  const sign = { bolt: "⚡", cross: "✕", half: "◐", slash: "⊘", bars: "⏸", play: "▸" } as
    Record<string, string>;
  const text = sign[part.look.shape];
  if (!text || box.width < 14) return;
  context.fillStyle = colour("surface");
  context.textAlign = "right";
  context.fillText(text, box.x - 3, box.y + box.height - 3);
}

function draw(canvas: HTMLCanvasElement, lanes: Lane[], view: View, scroll: number): void {
  const scale = devicePixelRatio;
  const height = canvas.clientHeight;
  canvas.width = view.width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext("2d")!;
  context.scale(scale, scale);
  context.font = "12px system-ui, sans-serif";
  drawTimes(context, view, height);
  context.save();
  context.beginPath();
  context.rect(0, TOP, view.width, height - TOP);
  context.clip();
  const first = Math.max(0, Math.floor(scroll / LANE));
  const last = Math.min(lanes.length, Math.ceil((scroll + height) / LANE) + 1);
  for (let i = first; i < last; ++i) {
    const y = TOP + i * LANE - scroll;
    for (const part of lanes[i]!.parts) drawPart(context, view, part, y);
    context.fillStyle = colour("surface");
    context.fillRect(0, y, LEFT - 4, LANE);
    context.fillStyle = colour("ink");
    context.textAlign = "right";
    context.fillText(lanes[i]!.name, LEFT - 12, y + 15, LEFT - 16);
  }
  context.restore();
}

function isoOf(time: number): string {
  return Number.isNaN(time) ? "" : new Date(time).toISOString();
}

function words(part: Part, currency: string): string {
  const lines = [
    `trial ${part.trial}, attempt ${part.attempt.number}: ${part.look.word}`,
    `${clock(part.from)} for ${duration((part.to - part.from) / 1000)}`,
    ...(part.from - part.queued > 500
      ? [`waited ${duration((part.from - part.queued) / 1000)}`] : []),
    [part.attempt.node, part.attempt.pool, part.attempt.capacity].filter(Boolean).join(", "),
    ...(part.attempt.pricePerHour
      ? [`${money(part.attempt.pricePerHour, currency)} an hour`] : []),
    ...(part.attempt.resumedFromStep > 0
      ? [`went on from step ${part.attempt.resumedFromStep}`] : []),
  ];
  return lines.filter((line) => line !== "").join("\n");
}

interface LanesProps {
  lanes: Lane[];
  from: number;
  to: number;
  label: string;
}

function Lanes(props: LanesProps) {
  const { key, experiment } = useShared();
  const { lanes, from, to } = props;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState({ width: 0, scroll: 0 });
  const [tip, setTip] = useState<{ x: number; y: number; text: string } | null>(null);
  const tint = colours.value;
  const view = { from, to, width: size.width };
  useEffect(() => {
    const element = box.current!;
    const measure = () => setSize({ width: element.clientWidth, scroll: element.scrollTop });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (size.width > 0) draw(canvas.current!, lanes, view, size.scroll);
  }, [lanes, from, to, size, tint]);
  const find = (event: MouseEvent): Part | undefined => {
    const bounds = canvas.current!.getBoundingClientRect();
    const [x, y] = [event.clientX - bounds.left, event.clientY - bounds.top];
    if (y < TOP) return undefined;
    const lane = lanes[Math.floor((y - TOP + size.scroll) / LANE)];
    return lane?.parts.findLast(
      (one) => position(view, one.queued) <= x && x <= Math.max(position(view, one.to),
        position(view, one.from) + 4),
    );
  };
  // The wheel with Ctrl, or a pinch, looks closer at where the pointer is.
  const onWheel = (event: WheelEvent) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const bounds = canvas.current!.getBoundingClientRect();
    const share = (event.clientX - bounds.left - LEFT) / (size.width - LEFT - 12);
    const factor = event.deltaY > 0 ? 1.25 : 0.8;
    const middle = from + share * (to - from);
    setParams({
      from: Math.round(middle - (middle - from) * factor),
      to: Math.round(middle + (to - middle) * factor),
    });
  };
  const height = TOP + lanes.length * LANE + 8;
  return (
    <div class="lanes" ref={box} tabIndex={0} role="group" aria-label={props.label}>
      <div style={{ height: `${height}px` }}>
        <canvas
          ref={canvas}
          class="lanes-canvas"
          role="img"
          aria-label={props.label}
          style={{ height: `min(${height}px, 66vh)` }}
          onPointerMove={(event) => {
            const part = find(event);
            setTip(part ? {
              x: event.offsetX, y: event.offsetY, text: words(part, currencyOf(experiment)),
            } : null);
          }}
          onPointerLeave={() => setTip(null)}
          onWheel={onWheel}
          onClick={(event) => {
            const part = find(event);
            if (part) go(link(["t", key.ns, key.name, part.trial, "attempts"]));
          }}
        />
      </div>
      {tip && (
        <div
          class="tip"
          style={{
            top: `${tip.y + size.scroll + 16}px`,
            left: `${Math.min(tip.x + 14, size.width - 260)}px`,
          }}
        >
          {tip.text}
        </div>
      )}
    </div>
  );
}

function Legend(props: { parts: Part[] }) {
  const seen = new Map(props.parts.map((one) => [one.look.word, one.look]));
  return (
    <div class="legend">
      {[...seen.values()].map((look) => (
        <span key={look.word} class={`state ${look.tone}`}>
          <Icon shape={look.shape} />
          {look.word}
        </span>
      ))}
      <span>thin: waited</span>
      <span>hatched: on a spot machine</span>
      <span>Ctrl and the wheel: closer</span>
    </div>
  );
}

export default function Timeline() {
  const { key, experiment, data, rows } = useShared();
  const loaded = useLoad(`${key.ns}/${key.name}`, (abort) => readTimeline(key, abort));
  useChanges(key, (changes) => {
    if (changes.some((one) => one.kind === "attempt")) loaded.again();
  }, 1500);
  const ended = isEnded(experiment);
  const now = useNow(ended ? 60_000 : 1000);
  const byNode = param("lanes") === "node";
  const filtered = param("filter") !== "";
  const parts = useMemo(() => {
    const all = partsOf(loaded.value ?? [], now);
    if (!filtered || !data) return all;
    const wanted = new Set(Array.from(rows, (row) => data.table.trial(row)));
    return all.filter((one) => wanted.has(one.trial));
  }, [loaded.value, ended ? 0 : now, rows, filtered]);
  const lanes = useMemo(() => lanesOf(parts, byNode), [parts, byNode]);
  if (!loaded.value) {
    return loaded.error ? <p class="problem">{loaded.error.message}</p> : <div aria-busy="true" />;
  }
  const begin = parts.reduce((least, one) => Math.min(least, one.queued), Infinity);
  const end = parts.reduce((most, one) => Math.max(most, one.to), -Infinity);
  const from = Number(param("from")) || begin;
  const to = Math.max(Number(param("to")) || end, from + 1);
  const lost = parts.filter((one) => one.look.tone === "bolt").length;
  const label = `${plural(parts.length, "attempt")} in ${count(lanes.length)} lanes, ` +
    `${plural(lost, "preemption")}, over ${duration((end - begin) / 1000)}`;
  const zoomed = param("from") !== "" || param("to") !== "";
  return (
    <>
      <FilterBar shown={label} />
      <Panel
        title="Attempts"
        image
        summary={label}
        command={`shirabe get attempts ${key.name}${namespaceFlag(key)} -o wide`}
        table={() => ({
          columns: ["trial", "attempt", "why it ended", "node", "pool", "capacity", "waited, s",
            "start", "end", "ran, s", "cost"],
          rows: parts.map((one) => [
            one.trial, one.attempt.number, one.look.word, one.attempt.node,
            one.attempt.pool, one.attempt.capacity,
            ((one.from - one.queued) / 1000).toFixed(1), isoOf(one.attempt.start),
            isoOf(one.attempt.end), ((one.to - one.from) / 1000).toFixed(1),
            one.attempt.cost || "",
          ]),
        })}
        tools={
          <>
            <label>
              One lane a
              <select
                value={byNode ? "node" : "trial"}
                onChange={(event) => setParams({
                  lanes: event.currentTarget.value === "node" ? "node" : "",
                })}
              >
                <option>trial</option>
                <option>node</option>
              </select>
            </label>
            {zoomed && <button onClick={() => setParams({ from: "", to: "" })}>Show all</button>}
          </>
        }
      >
        {parts.length === 0 ? (
          <Empty title="No attempt has been made yet" />
        ) : (
          <>
            <Lanes lanes={lanes} from={from} to={to} label={label} />
            <Legend parts={parts} />
          </>
        )}
      </Panel>
    </>
  );
}
