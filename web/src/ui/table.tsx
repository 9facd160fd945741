// A table of a few rows, all of which are drawn, that scrolls where it is too wide.
import type { ComponentChildren } from "preact";

export interface TableRow {
  key: string | number;
  cells: ComponentChildren[];
  class?: string | undefined;
}

interface PlainTableProps {
  label: string;
  columns: ComponentChildren[];
  rows: TableRow[];
  headed?: boolean; // the first cell of a row names it
  cellClass?: string;
  children?: ComponentChildren; // above it
}

export function PlainTable(props: PlainTableProps) {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={props.label}>
      {props.children}
      <table class="plain-table">
        <caption class="unseen">{props.label}</caption>
        <thead>
          <tr>
            {props.columns.map((column, i) =>
              column === "" ? <td key={i} /> : <th scope="col" key={i}>{column}</th>)}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr key={row.key} class={row.class}>
              {row.cells.map((cell, i) =>
                props.headed && i === 0
                  ? <th scope="row" key={i}>{cell}</th>
                  : <td key={i} class={props.cellClass}>{cell}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
