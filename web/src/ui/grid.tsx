// A table of any number of rows, of which only those in sight are drawn. Keys: j k and the arrows
// walk, Home and End, Enter opens, x selects; a click on a heading sorts.
//
// All rows have one height, so that which are in sight is a division. A row that leaves at one end
// becomes the one that enters at the other: its nodes stay and get other text, and the rows between
// are not touched.
import type { ComponentChildren, RefObject } from "preact";
import { Component } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useKeys } from "../keys.js";

export interface Column {
  id: string;
  name: ComponentChildren;
  label?: string; // of the heading, where `name` is no text
  width: string; // of a grid: 8rem, minmax(10rem, 2fr)
  narrow?: string; // its width where there is little room
  number?: boolean; // aligned at the right
  least?: boolean; // left out where there is little room
  sortable?: boolean;
  ascends?: boolean; // the least comes first at the first click; if not said, of what is no number
  cell: (row: number) => ComponentChildren;
}

interface GridProps {
  label: string;
  rows: number;
  columns: Column[];
  sort: string; // a column's id; ~id for descending
  onSort: (sort: string) => void;
  onOpen: (row: number) => void;
  isSelected?: (row: number) => boolean;
  onSelect?: (row: number) => void;
  onFocus?: (row: number) => void;
  rowHeight?: number;
  empty?: ComponentChildren;
}

const HEIGHT = 40; // of a row, in pixels
const GAP = 0.9; // between columns, in rem

// The first length in a column's width: what it needs at least, in rem.
function leastWidth(width: string): number {
  return Number(/([\d.]+)rem/.exec(width)?.[1] ?? 0);
}

interface Sight {
  first: number;
  count: number;
}

const BEYOND = 6; // rows that are drawn on either side of those in sight
const STEP = 3; // rows that are scrolled before any is drawn

function useSight(scroller: RefObject<HTMLDivElement | null>, rowHeight: number): Sight {
  const [sight, setSight] = useState<Sight>({ first: 0, count: 24 });
  useEffect(() => {
    const element = scroller.current!;
    let height = 0;
    const look = () => {
      const top = Math.floor(element.scrollTop / rowHeight) - BEYOND;
      const first = Math.max(0, top - (top % STEP));
      const count = Math.ceil(height / rowHeight) + 2 * BEYOND + STEP;
      setSight((old) => (old.first === first && old.count === count ? old : { first, count }));
    };
    const observer = new ResizeObserver(([entry]) => {
      height = entry!.contentRect.height;
      look();
    });
    observer.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, [rowHeight]);
  return sight;
}

// Brings a row into sight, below the heading.
function scrollTo(element: HTMLDivElement, row: number, rowHeight: number): void {
  const head = element.querySelector<HTMLElement>(".grid-head")?.offsetHeight ?? 0;
  const top = row * rowHeight;
  const room = element.clientHeight - head - rowHeight;
  element.scrollTop = Math.max(Math.min(element.scrollTop, top), top - Math.max(0, room));
}

function classOf(column: Column): string | undefined {
  const names = [column.number && "number", column.least && "least"].filter(Boolean);
  return names.join(" ") || undefined;
}

// What a click on its heading sorts by: one order, then the other, then none.
export function nextSort(column: Column, sort: string): string {
  const orders = [column.id, `~${column.id}`];
  if (!(column.ascends ?? !column.number)) orders.reverse();
  return orders[orders.indexOf(sort) + 1] ?? "";
}

function Head(props: { column: Column; sort: string; onSort: (sort: string) => void }) {
  const { column, sort } = props;
  const down = sort === `~${column.id}`;
  const up = sort === column.id;
  return (
    <div
      role="columnheader"
      class={classOf(column)}
      aria-sort={up ? "ascending" : down ? "descending" : column.sortable ? "none" : undefined}
    >
      {column.sortable ? (
        <button class="plain" onClick={() => props.onSort(nextSort(column, sort))}>
          {column.name}
          <span class="order" aria-hidden="true">
            {up ? "▲" : down ? "▼" : ""}
          </span>
        </button>
      ) : (
        <span class={column.label ? "unseen" : undefined}>{column.label ?? column.name}</span>
      )}
    </div>
  );
}

interface RowProps {
  row: number;
  rowHeight: number;
  columns: Column[];
  current: boolean;
  selected: boolean | undefined; // undefined where nothing can be selected
  onFocus: (row: number) => void;
  onOpen: (row: number) => void;
}

// Drawn again only if something of it has changed.
class Row extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    const now = this.props;
    return (Object.keys(next) as (keyof RowProps)[]).some((name) => next[name] !== now[name]);
  }
  override render({ row, rowHeight, columns, current, selected }: RowProps) {
    return (
      <div
        id={`row-${row}`}
        role="row"
        class={current ? "grid-row current" : "grid-row"}
        aria-rowindex={row + 2}
        aria-selected={selected}
        style={{ transform: `translateY(${row * rowHeight}px)` }}
        onClick={(event) => {
          if ((event.target as HTMLElement).closest("a, button, input, label")) return;
          this.props.onFocus(row);
        }}
        onDblClick={() => this.props.onOpen(row)}
      >
        {columns.map((column) => (
          <div key={column.id} role="gridcell" class={classOf(column)}>
            {column.cell(row)}
          </div>
        ))}
      </div>
    );
  }
}

function Rows(props: { grid: GridProps; sight: Sight; current: number;
  focus: (row: number) => void }) {
  const { grid, sight } = props;
  const rowHeight = grid.rowHeight ?? HEIGHT;
  const focus = useLatest(props.focus);
  const open = useLatest(grid.onOpen);
  const rows: ComponentChildren[] = [];
  for (let row = sight.first; row < Math.min(grid.rows, sight.first + sight.count); ++row) {
    rows.push(
      <Row
        key={row % sight.count}
        row={row}
        rowHeight={rowHeight}
        columns={grid.columns}
        current={row === props.current}
        selected={grid.onSelect ? (grid.isSelected?.(row) ?? false) : undefined}
        onFocus={focus}
        onOpen={open}
      />,
    );
  }
  return (
    <div role="rowgroup" class="grid-body" style={{ height: `${grid.rows * rowHeight}px` }}>
      {rows}
    </div>
  );
}

// The same function always, which calls that of the last drawing.
function useLatest(back: (row: number) => void): (row: number) => void {
  const latest = useRef(back);
  latest.current = back;
  return useRef((row: number) => latest.current(row)).current;
}

function useRowKeys(props: GridProps, current: number, move: (to: number) => void): void {
  const select = props.onSelect;
  useKeys(
    [
      { key: "j", help: "next row", act: () => move(current + 1) },
      { key: "k", help: "previous row", act: () => move(current - 1) },
      { key: "Enter", help: "open the row", act: () => current >= 0 && props.onOpen(current) },
      ...(select
        ? [{ key: "x", help: "select the row", act: () => current >= 0 && select(current) }]
        : []),
    ],
  );
}

export function Grid(props: GridProps) {
  const rowHeight = props.rowHeight ?? HEIGHT;
  const scroller = useRef<HTMLDivElement>(null);
  const sight = useSight(scroller, rowHeight);
  const [current, setCurrent] = useState(-1);
  const focus = (row: number) => {
    setCurrent(row);
    props.onFocus?.(row);
  };
  const move = (to: number) => {
    if (props.rows === 0) return;
    const row = Math.max(0, Math.min(props.rows - 1, to));
    scrollTo(scroller.current!, row, rowHeight);
    focus(row);
  };
  useRowKeys(props, current, move);
  const onKey = (event: KeyboardEvent) => {
    const steps: Record<string, number> = {
      ArrowDown: current + 1, ArrowUp: current - 1, Home: 0, End: props.rows - 1,
      PageDown: current + 20, PageUp: current - 20,
    };
    const to = steps[event.key];
    if (to === undefined || event.target !== scroller.current) return;
    event.preventDefault();
    move(to);
  };
  const least = props.columns.reduce((sum, one) => sum + leastWidth(one.width) + GAP, 1.1);
  const template = props.columns.map((one) => one.width).join(" ");
  const narrow = props.columns.filter((one) => !one.least)
    .map((one) => one.narrow ?? one.width).join(" ");
  return (
    <div
      class="grid"
      ref={scroller}
      role="grid"
      aria-label={props.label}
      aria-rowcount={props.rows + 1}
      aria-multiselectable={props.onSelect ? true : undefined}
      aria-activedescendant={current >= 0 ? `row-${current}` : undefined}
      tabIndex={0}
      onKeyDown={onKey}
      style={{ "--columns": template, "--narrow-columns": narrow, "--row": `${rowHeight}px`,
        "--least": `${least}rem` }}
    >
      <div class="grid-row grid-head" role="row" aria-rowindex={1}>
        {props.columns.map((column) => (
          <Head key={column.id} column={column} sort={props.sort} onSort={props.onSort} />
        ))}
      </div>
      {props.rows === 0 && props.empty !== undefined && (
        <div role="row" class="grid-empty">
          <div role="gridcell">{props.empty}</div>
        </div>
      )}
      <Rows grid={props} sight={sight} current={current} focus={focus} />
    </div>
  );
}
