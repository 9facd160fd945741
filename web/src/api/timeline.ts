// The attempts of an experiment, for the timeline.
import type { Arrays, Head } from "./binary.js";
import { readArrays } from "./binary.js";
import type { Key } from "./experiments.js";
import { pathOf } from "./experiments.js";
import { ask } from "./http.js";

export interface TimelineAttempt {
  trial: number;
  number: number;
  state: string;
  cause: string | null;
  created: number; // ms since 1970; NaN = not there
  start: number;
  end: number;
  node: string;
  pool: string;
  capacity: string;
  pricePerHour: number;
  cost: number;
  resumedFromStep: number;
}

const FIELDS = ["trial", "attempt", "state", "cause", "created", "start", "end", "node", "pool",
  "capacity", "pricePerHour", "cost", "resumedFromStep"];

function rowsOf({ head, at }: Arrays<Head>): TimelineAttempt[] {
  const columns = new Map(head.columns.map((one) => [one.name, {
    values: at(one.offset, head.rows), words: one.dictionary ?? [],
  }]));
  const number = (name: string, i: number) => columns.get(name)?.values[i] ?? NaN;
  const word = (name: string, i: number) => columns.get(name)?.words[number(name, i)] ?? "";
  return Array.from({ length: head.rows }, (_, i) => ({
    trial: number("trial", i), number: number("attempt", i), state: word("state", i),
    cause: word("cause", i) || null, created: number("created", i) * 1000,
    start: number("start", i) * 1000, end: number("end", i) * 1000, node: word("node", i),
    pool: word("pool", i), capacity: word("capacity", i), pricePerHour: number("pricePerHour", i),
    cost: number("cost", i), resumedFromStep: number("resumedFromStep", i) || 0,
  }));
}

export async function readTimeline(key: Key, abort: AbortSignal): Promise<TimelineAttempt[]> {
  const query = new URLSearchParams({ fields: FIELDS.join(",") });
  const all: TimelineAttempt[] = [];
  for (let next: string | undefined = ""; next !== undefined; ) {
    if (next !== "") query.set("pageToken", next);
    const response = await ask(`${pathOf(key)}/timeline?${query}`, { abort });
    const reply: Arrays<Head> = readArrays<Head>(await response.arrayBuffer());
    for (const row of rowsOf(reply)) all.push(row);
    next = reply.head.nextPageToken;
  }
  return all;
}
