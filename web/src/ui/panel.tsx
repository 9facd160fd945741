// A part of a page: its picture, what it says in words, the same as a command, as a table and as a
// file. What is not shown is said under its title.
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { Dialog, copy, note } from "./dialog.js";
import { Menu } from "./menu.js";
import type { Item } from "./menu.js";
import { PlainTable } from "./table.js";

export interface Table {
  columns: string[];
  rows: (string | number)[][];
}

interface PanelProps {
  title: string;
  children: ComponentChildren;
  command?: string | undefined;
  // What the picture shows and the command does not.
  commandNote?: string | undefined;
  table?: (() => Table) | undefined;
  summary?: string | undefined; // for those who do not see the picture
  shown?: string | undefined; // "42 of 100,000 shown"
  tools?: ComponentChildren;
  image?: boolean; // it has a canvas that can be saved
  class?: string;
}

function quoted(cell: string | number): string {
  const text = String(cell);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csv(table: Table): string {
  const lines = [table.columns, ...table.rows].map((row) => row.map(quoted).join(","));
  return lines.join("\r\n") + "\r\n";
}

export function save(name: string, content: Blob | string, type = "text/csv"): void {
  const blob = typeof content === "string" ? new Blob([content], { type }) : content;
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(blob);
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 60_000);
}

// The canvases of a panel, one over the other, on the page's own background.
function savePicture(root: HTMLElement, name: string): void {
  const canvases = [...root.querySelectorAll("canvas")];
  const boxes = canvases.map((one) => one.getBoundingClientRect());
  if (canvases.length === 0) return note("there is nothing to save yet", true);
  const left = Math.min(...boxes.map((box) => box.left));
  const top = Math.min(...boxes.map((box) => box.top));
  const right = Math.max(...boxes.map((box) => box.right));
  const bottom = Math.max(...boxes.map((box) => box.bottom));
  const scale = Math.max(2, devicePixelRatio);
  const picture = document.createElement("canvas");
  picture.width = Math.ceil((right - left) * scale);
  picture.height = Math.ceil((bottom - top) * scale);
  const context = picture.getContext("2d")!;
  context.fillStyle = getComputedStyle(root).backgroundColor;
  context.fillRect(0, 0, picture.width, picture.height);
  canvases.forEach((canvas, i) => {
    const box = boxes[i]!;
    const [x, y] = [(box.left - left) * scale, (box.top - top) * scale];
    context.drawImage(canvas, x, y, box.width * scale, box.height * scale);
  });
  picture.toBlob((blob) => blob && save(`${name}.png`, blob));
}

// A picture that is SVG already, with the colours that the page gives it written into it.
function saveSvg(svg: SVGSVGElement, name: string): void {
  const clone = svg.cloneNode(true) as SVGSVGElement;
  const from = [svg, ...svg.querySelectorAll<SVGElement>("*")];
  const to = [clone, ...clone.querySelectorAll<SVGElement>("*")];
  const names = ["fill", "stroke", "stroke-width", "opacity", "font-size", "font-family",
    "text-anchor", "stroke-dasharray", "fill-opacity"];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const property of names) to[i]!.setAttribute(property, style.getPropertyValue(property));
  });
  clone.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  save(`${name}.svg`, new XMLSerializer().serializeToString(clone), "image/svg+xml");
}

export function TableView(props: { table: Table; caption: string }) {
  const { columns, rows } = props.table;
  const most = 2000;
  const shown = rows.slice(0, most).map((cells, key) => ({ key, cells }));
  return (
    <PlainTable label={props.caption} columns={columns} rows={shown}>
      {rows.length > most && (
        <p class="hint">
          {most} of {rows.length} rows shown; the CSV has all of them
        </p>
      )}
    </PlainTable>
  );
}

export function Panel(props: PanelProps) {
  const [asTable, setAsTable] = useState(false);
  const [command, setCommand] = useState(false);
  const root = useRef<HTMLElement>(null);
  const name = props.title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  const items: Item[] = [];
  if (props.command) items.push({ name: "As command", act: () => setCommand(true) });
  if (props.table) {
    items.push({ name: asTable ? "As picture" : "As table", act: () => setAsTable(!asTable) });
    items.push({ name: "Download CSV", act: () => save(`${name}.csv`, csv(props.table!())) });
  }
  if (props.image) {
    const picture = () => {
      const svg = root.current!.querySelector<SVGSVGElement>("svg.picture");
      if (svg) saveSvg(svg, name);
      else savePicture(root.current!, name);
    };
    items.push({ name: "Download picture", act: picture });
  }
  return (
    <section class={`panel ${props.class ?? ""}`} ref={root} aria-label={props.title}>
      <header>
        <h2>{props.title}</h2>
        {props.shown && <span class="shown">{props.shown}</span>}
        <div class="tools">
          {props.tools}
          {items.length > 0 && <Menu label={`${props.title}: more`} items={items} />}
        </div>
      </header>
      {props.summary && <p class="unseen">{props.summary}</p>}
      {asTable && props.table ? (
        <TableView table={props.table()} caption={props.title} />
      ) : (
        props.children
      )}
      {command && (
        <Dialog title={`${props.title} as a command`} onClose={() => setCommand(false)}>
          <Command text={props.command!} />
          {props.commandNote && <p class="hint">{props.commandNote}</p>}
        </Dialog>
      )}
    </section>
  );
}

export function Command(props: { text: string }) {
  return (
    <div class="command">
      <code>{props.text}</code>
      <button onClick={() => void copy(props.text)}>Copy</button>
    </div>
  );
}

export function Empty(props: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{props.title}</strong>
      <div>{props.children}</div>
    </div>
  );
}
