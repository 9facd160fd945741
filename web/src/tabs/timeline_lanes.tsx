// The picture of a timeline: its lanes one by one, or all of them at once, and what the pointer is
// on. It is drawn in turns; what stands there stays until the next picture is ready.
import type { Ref } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { clock, count, duration, money, plural } from "../format.js";
import type { Lanes } from "../lanes.js";
import { density, laneOfRow, partsAt } from "../lanes.js";
import { useShared } from "../pages/context.js";
import { currencyOf } from "../state.js";
import { colours } from "../theme.js";
import { inTurns } from "../turns.js";
import { go, link, param, setParams } from "../url.js";
import type { Overview, View } from "./timeline_draw.js";
import {
  LANE, LEFT, RIGHT, TOP, denseLanes, densityTask, drawLanes, drawOverview, overview, pictureOf,
  position, timeAt,
} from "./timeline_draw.js";

interface LanesProps {
  lanes: Lanes;
  from: number;
  to: number;
  label: string;
  all: boolean; // at once, some to a row of pixels
  onDrawn: () => void;
}

interface Size {
  width: number;
  height: number; // of the canvas
  scroll: number;
}

// What was drawn by the pixel: all lanes, or one of many attempts.
interface Merged {
  attempts: number;
  width: number; // in pixels
  height: number;
  all: Overview | null;
}

function words(lanes: Lanes, i: number, currency: string): string {
  const { table, from, to, queued, look, looks } = lanes.parts;
  const word = (name: "node" | "pool" | "capacity") => table.word(name, i);
  const price = table.number("pricePerHour")[i]!;
  const resumed = table.number("resumedFromStep")[i]!;
  const [trial, attempt] = [table.number("trial")[i], table.number("attempt")[i]];
  const waited = from[i]! - queued[i]!;
  const lines = [
    `trial ${trial}, attempt ${attempt}: ${looks[look[i]!]!.word}`,
    `${clock(from[i])} for ${duration((to[i]! - from[i]!) / 1000)}`,
    waited > 500 ? `waited ${duration(waited / 1000)}` : "",
    [word("node"), word("pool"), word("capacity")].filter(Boolean).join(", "),
    price ? `${money(price, currency)} an hour` : "",
    resumed > 0 ? `went on from step ${resumed}` : "",
  ];
  return lines.filter((line) => line !== "").join("\n");
}

function wordsOfMany(lanes: Lanes, found: number[]): string {
  const { table, look, looks } = lanes.parts;
  const trials = found.map((i) => table.number("trial")[i]!);
  const kinds = looks.map((one, k) => [found.filter((i) => look[i] === k).length, one.word]);
  const [first, last] = trials.reduce(
    ([a, b], one) => [Math.min(a, one), Math.max(b, one)], [Infinity, -Infinity]);
  return [
    `${plural(found.length, "attempt")} in one pixel`,
    first === last ? `trial ${first}` : `trials ${first} to ${last}`,
    kinds.filter(([n]) => n).map(([n, word]) => `${count(n as number)} ${word}`).join(", "),
  ].join("\n");
}

// Draws whenever something has changed; gives what was merged, or null while or where nothing was.
function usePicture(
  canvas: Ref<HTMLCanvasElement>, props: LanesProps, view: View, size: Size,
): [Merged | null, boolean] {
  const { lanes, all } = props;
  const { selected } = useShared();
  const marked = [...selected].join();
  const tint = colours.value;
  const [merged, setMerged] = useState<Merged | null>(null);
  const [busy, setBusy] = useState(true);
  const id = [view.from, view.to, view.width, tint].join();
  const rows = useMemo(() => new Map<number, OffscreenCanvas>(), [lanes, id]);
  const stands = useRef(""); // where in the lanes, and how large, what was drawn is
  const element = () => (canvas as { current: HTMLCanvasElement | null }).current!;
  const drawn = () => {
    setBusy(false);
    props.onDrawn();
  };
  useEffect(() => {
    if (view.width <= LEFT + RIGHT) return props.onDrawn(); // too narrow to show anything
    const abort = new AbortController();
    // Its picture may have left the page before this is told.
    const gone = () => abort.signal.aborted || element() === null;
    if (all) {
      setBusy(true);
      const height = Math.max(1, Math.floor(size.height - TOP - 4));
      void inTurns(overview(lanes, view, height), abort.signal).then((made) => {
        if (!made || gone()) return;
        drawOverview(element(), view, made, selected);
        const { width, height: rows } = made.task;
        const { attempts } = made.found;
        setMerged({ attempts, width, height: rows * made.high, all: made });
        drawn();
      });
      return () => abort.abort();
    }
    const scene = { lanes, view, scroll: size.scroll, selected };
    const place = [size.scroll, size.width, size.height, tint].join();
    const draw = () => {
      drawLanes(element(), scene, rows);
      stands.current = place;
      drawn();
    };
    const missing = denseLanes(element(), scene).filter((lane) => !rows.has(lane));
    if (missing.length === 0) {
      if (rows.size === 0) setMerged(null);
      return draw();
    }
    // Where something else is to be seen, what there is of it is seen at once.
    if (stands.current !== place) drawLanes(element(), scene, rows);
    setBusy(true);
    void (async () => {
      for (const lane of missing) {
        const task = densityTask(lanes, view, [lane, lane + 1], 1);
        const found = await inTurns(density(task), abort.signal);
        if (!found || gone()) return;
        rows.set(lane, pictureOf(task, found));
        setMerged({ attempts: found.attempts, width: task.width, height: 1, all: null });
      }
      draw();
    })();
    return () => abort.abort();
  }, [lanes, id, size.height, all, all ? 0 : size.scroll, marked]);
  return [merged && all === (merged.all !== null) ? merged : null, busy];
}

function mergedWords(merged: Merged): string {
  const size = `${count(merged.attempts)} attempts in ${count(merged.width)} × ` +
    `${count(merged.height)} pixels`;
  const mean = "a pixel has the mean colour of its attempts";
  if (!merged.all) {
    return `Lanes of many attempts are drawn by the pixel (${size}): ${mean}. ` +
      "Ctrl and the wheel shows each.";
  }
  const { task, high } = merged.all;
  const a = (task.last - task.first) / task.height;
  const lanes = a > 1 ? `, ${a >= 10 ? Math.round(a) : a.toFixed(1)} lanes to a row`
    : `, each lane ${plural(high, "pixel")} high`;
  return `${size}${lanes}: ${mean}, the more opaque the more they are. ` +
    "Click one to see its lanes one by one.";
}

export function LanesPicture(props: LanesProps) {
  const { key, experiment } = useShared();
  const { lanes, from, to, all } = props;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState<Size>({ width: 0, height: 0, scroll: 0 });
  const [tip, setTip] = useState<{ x: number; y: number; text: string } | null>(null);
  const view = { from, to, width: size.width };
  useEffect(() => {
    const element = box.current!;
    const measure = () => canvas.current && setSize({
      width: element.clientWidth, height: canvas.current.clientHeight, scroll: element.scrollTop,
    });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    observer.observe(canvas.current!);
    element.addEventListener("scroll", measure, { passive: true });
    return () => observer.disconnect();
  }, []);
  const wanted = param("lane");
  useEffect(() => {
    if (wanted !== "" && !all) box.current!.scrollTop = (Number(wanted) - 8) * LANE;
  }, [wanted, all]);
  const [merged, busy] = usePicture(canvas, props, view, size);
  const shownAll = merged?.all ?? null;
  const lanesOfRow = (made: Overview, y: number): [number, number] | null => {
    const row = Math.floor(y / made.high);
    if (row >= made.task.height) return null;
    return [laneOfRow(made.task, row), laneOfRow(made.task, row + 1)];
  };

  // The attempts under the pointer, the last of them on top.
  const find = (event: MouseEvent): number[] => {
    const bounds = canvas.current!.getBoundingClientRect();
    const [x, y] = [event.clientX - bounds.left, event.clientY - bounds.top - TOP];
    if (y < 0 || x < LEFT) return [];
    if (all) {
      const own = shownAll && lanesOfRow(shownAll, y);
      return own ? partsAt(lanes, own,
        [timeAt(view, Math.floor(x)), timeAt(view, Math.floor(x) + 1)]) : [];
    }
    const lane = Math.floor((y + size.scroll) / LANE);
    if (lane >= lanes.count) return [];
    const { from: starts } = lanes.parts;
    // As wide as it is drawn.
    return partsAt(lanes, [lane, lane + 1], [timeAt(view, x - 4), timeAt(view, x)])
      .filter((i) => lanes.parts.to[i]! >= timeAt(view, x) || position(view, starts[i]!) + 4 >= x)
      .slice(-1);
  };
  // The wheel with Ctrl, or a pinch, looks closer at where the pointer is.
  const onWheel = (event: WheelEvent) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const bounds = canvas.current!.getBoundingClientRect();
    const middle = timeAt(view, event.clientX - bounds.left);
    const factor = event.deltaY > 0 ? 1.25 : 0.8;
    setParams({
      from: Math.round(middle - (middle - from) * factor),
      to: Math.round(middle + (to - middle) * factor),
    });
  };
  const onClick = (event: MouseEvent) => {
    const found = find(event);
    if (found.length === 0) return;
    if (found.length === 1) {
      const trial = lanes.parts.table.number("trial")[found[0]!]!;
      go(link(["t", key.ns, key.name, trial, "attempts"]));
      return;
    }
    const bounds = canvas.current!.getBoundingClientRect();
    const own = shownAll && lanesOfRow(shownAll, event.clientY - bounds.top - TOP);
    if (own) setParams({ rows: "each", lane: own[0] });
  };
  const height = TOP + lanes.count * LANE + 8;
  return (
    <>
      <div class="lanes" ref={box} tabIndex={0} role="group" aria-label={props.label}>
        <div style={{ height: all ? "66vh" : `${height}px` }}>
          <canvas
            ref={canvas}
            class="lanes-canvas"
            role="img"
            aria-label={props.label}
            data-busy={String(busy)}
            style={{ height: all ? "66vh" : `min(${height}px, 66vh)` }}
            onPointerMove={(event) => {
              const found = find(event);
              setTip(found.length === 0 ? null : {
                x: event.offsetX, y: event.offsetY,
                text: found.length === 1 ? words(lanes, found[0]!, currencyOf(experiment))
                  : wordsOfMany(lanes, found),
              });
            }}
            onPointerLeave={() => setTip(null)}
            onWheel={onWheel}
            onClick={onClick}
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
      {merged && <p class="hint">{mergedWords(merged)}</p>}
    </>
  );
}
