// The attempts of an experiment, for the timeline: by columns, as they come, since there may be
// hundreds of thousands.
import type { Arrays, Head } from "./binary.js";
import { readArrays } from "./binary.js";
import type { Key } from "./experiments.js";
import { pathOf } from "./experiments.js";
import { inTurns } from "../turns.js";
import { ask } from "./http.js";

const NUMBERS = ["trial", "attempt", "created", "start", "end", "pricePerHour", "cost",
  "resumedFromStep"] as const;
const WORDS = ["state", "cause", "node", "pool", "capacity"] as const;
const TIMES = ["created", "start", "end"];

export type NumberField = (typeof NUMBERS)[number];
export type WordField = (typeof WORDS)[number];

// One array a field, one place an attempt. Times are ms since 1970; NaN = not there.
export class AttemptTable {
  rows = 0;
  private readonly numbers = new Map<string, Float64Array>();
  private readonly codes = new Map<string, Int32Array>(); // -1 = not there
  private readonly dictionaries = new Map<string, string[]>();

  constructor() {
    for (const name of NUMBERS) this.numbers.set(name, new Float64Array());
    for (const name of WORDS) {
      this.codes.set(name, new Int32Array());
      this.dictionaries.set(name, []);
    }
  }
  number(name: NumberField): Float64Array {
    return this.numbers.get(name)!;
  }
  code(name: WordField): Int32Array {
    return this.codes.get(name)!;
  }
  words(name: WordField): string[] {
    return this.dictionaries.get(name)!;
  }
  word(name: WordField, row: number): string {
    return this.words(name)[this.code(name)[row]!] ?? "";
  }

  *add({ head, at }: Arrays<Head>): Generator<void, void> {
    const rows = this.rows + head.rows;
    for (const name of NUMBERS) {
      const column = head.columns.find((one) => one.name === name);
      const all = new Float64Array(rows).fill(NaN, this.rows);
      all.set(this.number(name));
      if (column) all.set(at(column.offset, head.rows), this.rows);
      if (TIMES.includes(name)) for (let i = this.rows; i < rows; ++i) all[i]! *= 1000;
      this.numbers.set(name, all);
      yield;
    }
    for (const name of WORDS) {
      const column = head.columns.find((one) => one.name === name);
      const all = new Int32Array(rows).fill(-1, this.rows);
      all.set(this.code(name));
      this.codes.set(name, all);
      if (!column) continue;
      const known = this.words(name);
      const mine = (column.dictionary ?? []).map((word) => {
        const i = known.indexOf(word);
        return i >= 0 ? i : known.push(word) - 1;
      });
      const values = at(column.offset, head.rows);
      for (let i = 0; i < head.rows; ++i) all[this.rows + i] = mine[values[i]!] ?? -1;
      yield;
    }
    this.rows = rows;
  }
}

export async function readTimeline(key: Key, abort: AbortSignal): Promise<AttemptTable> {
  const query = new URLSearchParams({ fields: [...NUMBERS, ...WORDS].join(",") });
  const table = new AttemptTable();
  for (let next: string | undefined = ""; next !== undefined; ) {
    if (next !== "") query.set("pageToken", next);
    const response = await ask(`${pathOf(key)}/timeline?${query}`, { abort });
    const reply: Arrays<Head> = readArrays<Head>(await response.arrayBuffer());
    await inTurns(table.add(reply), abort);
    next = reply.head.nextPageToken;
  }
  return table;
}
