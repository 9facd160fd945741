// The axes over the picture of parallel coordinates: names, ticks, the lane of what has no value,
// and what is dragged along them.
import { useRef, useState } from "preact/hooks";
import type { Axis } from "../axes.js";
import { ticksOf } from "../axes.js";

export const TOP = 46;
export const SIDE = 70;
export const INNER = 314; // from an axis' top to its bottom
export const FOOT = 30; // of the lane beneath it
const BELOW = 20;

// Where the parts stand, in pixels.
export interface Place {
  width: number;
  x: number[]; // of the axes
  lanes: boolean[]; // whether a trial has no value there
}

export function footOf(place: { lanes: boolean[] }): number {
  return place.lanes.includes(true) ? FOOT : 0;
}

export function heightOf(place: { lanes: boolean[] }): number {
  return TOP + INNER + footOf(place) + BELOW;
}

// Positions on an axis; a click is a range of no length.
export interface Range {
  from: number;
  to: number;
}

export interface AxesProps {
  axes: Axis[];
  place: Place;
  onScale: (axis: Axis) => void;
  onRange: (axis: Axis, range: Range) => void;
  onNone?: ((axis: Axis) => void) | undefined; // the lane was clicked
}

const yOf = (at: number) => TOP + (1 - at) * INNER;
const LANE_Y = TOP + INNER + FOOT / 2;

// Beside the first axis there is room for so many letters.
const LETTERS = 11;

function shortened(text: string): string {
  return text.length <= LETTERS ? text : `${text.slice(0, LETTERS - 1)}…`;
}

function Ticks(props: { axis: Axis }) {
  return (
    <>
      {ticksOf(props.axis).map((tick) => (
        <g key={tick.text} transform={`translate(0,${yOf(tick.position)})`}>
          <line x1={-4} x2={0} />
          <text class="halo" x={-7} dy="0.32em">
            {shortened(tick.text)}
            <title>{tick.text}</title>
          </text>
        </g>
      ))}
    </>
  );
}

function Lane(props: { axis: Axis; onNone: (() => void) | undefined }) {
  const { onNone } = props;
  return (
    <g class="none-lane">
      <line y1={TOP + INNER} y2={LANE_Y} />
      <line x1={-4} x2={4} y1={LANE_Y} y2={LANE_Y} />
      <text class="halo" x={-7} y={LANE_Y} dy="0.32em">none</text>
      {onNone && (
        <rect
          class="none-area" x={-40} width={52} y={TOP + INNER + 4} height={FOOT - 4}
          onClick={onNone}
        >
          <title>{`trials without ${props.axis.name}`}</title>
        </rect>
      )}
    </g>
  );
}

function titleOf(axis: Axis): string {
  return axis.scale === "category" ? axis.name
    : `${axis.name}: ${axis.scale}; click for another scale`;
}

export function Axes(props: AxesProps) {
  const { axes, place } = props;
  const room = Math.min(2 * SIDE, place.x.length > 1 ? place.x[1]! - place.x[0]! - 6 : 2 * SIDE);
  const [range, setRange] = useState<(Range & { axis: number }) | null>(null);
  const svg = useRef<SVGSVGElement>(null);
  const position = (event: PointerEvent) => {
    const top = svg.current!.getBoundingClientRect().top + TOP;
    return Math.max(0, Math.min(1, 1 - (event.clientY - top) / INNER));
  };
  return (
    <svg
      ref={svg}
      class="overlay"
      width={place.width}
      height={heightOf(place)}
      onPointerMove={(event) => range && setRange({ ...range, to: position(event) })}
      onPointerUp={() => {
        if (!range) return;
        props.onRange(axes[range.axis]!, range);
        setRange(null);
      }}
    >
      {axes.map((axis, i) => (
        <g key={axis.column.name} transform={`translate(${place.x[i]},0)`}>
          <foreignObject x={-room / 2} y={0} width={room} height={TOP - 6}>
            <button
              class="plain axis-name"
              title={titleOf(axis)}
              onClick={() => props.onScale(axis)}
            >
              <b>{axis.name}</b>
              <small>{axis.scale === "category" ? "" : axis.scale}</small>
            </button>
          </foreignObject>
          <line y1={TOP} y2={TOP + INNER} />
          <Ticks axis={axis} />
          {place.lanes[i] && (
            <Lane axis={axis} onNone={props.onNone && (() => props.onNone!(axis))} />
          )}
          <rect
            class="brush-area"
            x={-12}
            width={24}
            y={TOP}
            height={INNER}
            onPointerDown={(event) => {
              svg.current!.setPointerCapture(event.pointerId);
              const at = position(event);
              setRange({ axis: i, from: at, to: at });
            }}
          />
          {range?.axis === i && (
            <rect
              class="brush"
              x={-7}
              width={14}
              y={yOf(Math.max(range.from, range.to))}
              height={Math.abs(yOf(range.from) - yOf(range.to))}
            />
          )}
        </g>
      ))}
    </svg>
  );
}
