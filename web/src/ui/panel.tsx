// A part of a page: its picture, what it says in words, the same as a command, as a table and as a
// file. What is not shown is said under its title.
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { Dialog, copy, noteError } from "./dialog.js";
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
  image?: boolean; // it shows something that can be saved as a picture
  class?: string;
}

// A spreadsheet would run a text that begins so as a formula; after an apostrophe it is a text.
function isFormula(text: string): boolean {
  return /^[=+\-@\t\r\n]/.test(text) && Number.isNaN(Number(text));
}

function quoted(cell: string | number): string {
  const text = isFormula(String(cell)) ? `'${cell}` : String(cell);
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

async function savePicture(root: HTMLElement, file: string, title: string): Promise<void> {
  const { asPng, snapshot } = await import("./snapshot.js");
  const picture = snapshot(root, title);
  if (file.endsWith(".png")) save(file, await asPng(picture));
  else save(file, picture.text, "image/svg+xml");
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
  if (props.image && !asTable) {
    const title = `${props.title} · ${document.title}`;
    for (const kind of ["PNG", "SVG"]) {
      const file = `${name}.${kind.toLowerCase()}`;
      const act = () => void savePicture(root.current!, file, title).catch(noteError);
      items.push({ name: `Download ${kind}`, act });
    }
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
