// Reads application/vnd.shirabe.columns (docs/design/formats.md): a head in JSON, then arrays of
// numbers, which are used as they lie.
import { TrialColumns } from "./columns.js";
import type { Kind } from "./columns.js";

export interface Head {
  rows: number;
  total: number;
  revision: number;
  created?: string;
  nextPageToken?: string;
  columns: { name: string; kind: Kind; offset: number; dictionary?: string[] }[];
}

export interface Arrays<T> {
  head: T;
  at: (offset: number, length: number) => Float64Array;
}

const MAGIC = "SHIRABE\u0001";

export function readArrays<T>(buffer: ArrayBuffer): Arrays<T> {
  const bytes = new Uint8Array(buffer);
  const magic = String.fromCharCode(...bytes.subarray(0, 8));
  if (magic !== MAGIC) throw new Error("the server's columns are of another version: load again");
  const length = new DataView(buffer).getUint32(8, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(16, 16 + length))) as T;
  const begin = 16 + length;
  return { head, at: (offset, n) => new Float64Array(buffer, begin + 8 * offset, n) };
}

// Puts the rows of a reply into a table, each where its trial has its row already, or at the end.
export function putColumns(table: TrialColumns, reply: Arrays<Head>): void {
  const { head, at } = reply;
  const numbers = head.columns.find((one) => one.name === "trial");
  if (!numbers) throw new Error("the server's columns have no trial");
  table.reserve(table.rows + head.rows);
  const rows = Array.from(at(numbers.offset, head.rows), (trial) => table.rowFor(trial));
  const consecutive = rows.every((row, i) => row === rows[0]! + i);
  for (const one of head.columns) {
    if (one.name === "trial") continue;
    const column = table.add(one.name, one.kind);
    column.reserve(table.rows);
    const values = at(one.offset, head.rows);
    const codes = one.dictionary?.map((word) => column.code(word));
    if (codes === undefined && consecutive && rows.length > 0) {
      column.values.set(values, rows[0]);
      continue;
    }
    rows.forEach((row, i) => {
      const value = values[i]!;
      column.values[row] = codes && !Number.isNaN(value) ? codes[value]! : value;
    });
  }
}
