// The timeline's lanes, and their picture by the pixel.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AttemptTable } from "../../../web/src/api/timeline.js";
import type { DensityTask, Lanes, Rgb } from "../../../web/src/lanes.js";
import {
  density, laneOfRow, lanesOf, lanesWithin, partsAt, partsOf, rowOfLane,
} from "../../../web/src/lanes.js";

function done<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

type Row = [trial: number, start: number, end: number, cause?: string, node?: string];

// In seconds, as the server sends it.
function tableOf(rows: Row[], table = new AttemptTable()): AttemptTable {
  const dictionary = (of: (row: Row) => string | undefined) =>
    [...new Set(rows.map(of))].filter((one) => one !== undefined);
  const causes = dictionary((row) => row[3] ?? "completed");
  const nodes = dictionary((row) => row[4]);
  const fields: [string, (row: Row) => number, string[]?][] = [
    ["trial", (row) => row[0]], ["attempt", () => 1], ["created", (row) => row[1] - 1],
    ["start", (row) => row[1]], ["end", (row) => row[2]],
    ["state", () => 0, ["closed"]],
    ["cause", (row) => causes.indexOf(row[3] ?? "completed"), causes],
    ["node", (row) => (row[4] === undefined ? NaN : nodes.indexOf(row[4])), nodes],
  ];
  const numbers = fields.flatMap(([, of]) => rows.map(of));
  done(table.add({
    head: {
      rows: rows.length, total: rows.length, revision: 1,
      columns: fields.map(([name, , words], i) => ({
        name, kind: words ? "category" as const : "number" as const, offset: i * rows.length,
        ...(words ? { dictionary: words } : {}),
      })),
    },
    at: (offset, n) => Float64Array.from(numbers.slice(offset, offset + n)),
  }));
  return table;
}

function lanesFrom(rows: Row[], how = { byNode: false, trials: null as Set<number> | null }) {
  return done(lanesOf(done(partsOf(tableOf(rows), 100_000)), how));
}

const [GREEN, RED, GREY]: Rgb[] = [[0, 200, 0], [200, 0, 0], [90, 90, 90]];

function taskOf(lanes: Lanes, more: Partial<DensityTask> = {}): DensityTask {
  return {
    lanes, first: 0, last: lanes.count, from: 0, to: 100_000, width: 10, height: lanes.count,
    colours: lanes.parts.looks.map((look) => (look.word === "completed" ? GREEN! : RED!)),
    waiting: GREY!, ...more,
  };
}

test("attempts come page by page, and the words of each page mean the same", () => {
  const table = tableOf([[1, 10, 20, "completed", "a"]]);
  tableOf([[2, 20, 30, "oom", "b"], [3, 30, 40, "completed", "a"], [4, 1, 2]], table);
  assert.equal(table.rows, 4);
  assert.deepEqual([0, 1, 2, 3].map((i) => table.word("cause", i)),
    ["completed", "oom", "completed", "completed"]);
  assert.deepEqual([0, 1, 2, 3].map((i) => table.word("node", i)), ["a", "b", "a", ""]);
  assert.deepEqual([...table.number("start")], [10_000, 20_000, 30_000, 1000]);
  assert.ok(Number.isNaN(table.number("cost")[0]));
});

test("an attempt waits from the end of the one before; one that runs lasts until now", () => {
  const parts = done(partsOf(tableOf([[1, 10, 20], [1, 35, NaN], [2, NaN, 50]]), 90_000));
  assert.deepEqual([...parts.queued.slice(0, 2)], [9000, 20_000]);
  assert.deepEqual([...parts.to], [20_000, 90_000, 50_000]);
  assert.equal(parts.from[2], 50_000, "it never ran: it waited until its end");
});

test("lanes are those of trials or of nodes, of what is shown", () => {
  const rows: Row[] = [[1, 0, 10, "oom", "n10"], [2, 0, 10, "completed", "n9"],
    [1, 10, 20, "completed", "n9"], [3, 0, 5]];
  const byTrial = lanesFrom(rows);
  assert.deepEqual([0, 1, 2].map(byTrial.name), ["1", "2", "3"]);
  assert.deepEqual([...byTrial.start], [0, 2, 3, 4]);
  assert.deepEqual([...byTrial.items], [0, 2, 1, 3]);
  const byNode = lanesFrom(rows, { byNode: true, trials: null });
  assert.deepEqual([0, 1, 2].map(byNode.name), ["n9", "n10", "waits"]);
  assert.deepEqual([...byNode.items], [1, 2, 0, 3]);
  const some = lanesFrom(rows, { byNode: false, trials: new Set([2]) });
  assert.deepEqual([some.count, some.items.length, some.begin, some.end], [1, 1, -1000, 10_000]);
  assert.equal(some.ofLook.reduce((a, b) => a + b), 1);
});

test("what shares a pixel is one of their mean colour, and no attempt is too short for one", () => {
  const lanes = lanesFrom([[1, 20, 40], [2, 20, 30, "oom"], [3, 70, 70.001]]);
  const task = taskOf(lanes, { height: 1 });
  const { pixels, attempts } = done(density(task));
  const at = (x: number) => [...pixels.slice(4 * x, 4 * x + 3)];
  assert.equal(attempts, 3);
  assert.deepEqual(at(2), [100, 100, 0], "one of each");
  assert.deepEqual(at(3), [0, 200, 0]);
  assert.deepEqual(at(7), [0, 200, 0], "a millisecond");
  assert.ok(pixels[4 * 2 + 3]! > pixels[4 * 3 + 3]!, "two are more opaque than one");
  assert.equal(pixels[4 * 5 + 3], 0, "nothing is there");
  assert.deepEqual(at(1), [90, 90, 90], "they waited");
});

test("zoomed in, only what lies within is drawn and counted", () => {
  const lanes = lanesFrom([[1, 10, 20], [2, 40, 50], [3, 60, 70], [4, 95, 99]]);
  assert.deepEqual(done(lanesWithin(lanes, 45_000, 65_000)), [1, 3]);
  const { attempts, pixels } = done(density(
    taskOf(lanes, { from: 45_000, to: 65_000, first: 1, last: 3, height: 2 })));
  assert.equal(attempts, 2);
  assert.deepEqual([0, 9, 10, 19].map((i) => pixels[4 * i + 3]! > 0), [true, false, false, true]);
});

test("a row of pixels has the lanes that are drawn into it, and each lane has one row", () => {
  const lanes = lanesFrom(Array.from({ length: 1000 }, (_, i): Row => [i + 1, i, i + 1]));
  const task = taskOf(lanes, { first: 3, last: 990, height: 77 });
  let next = task.first;
  for (let row = 0; row < task.height; ++row) {
    assert.equal(laneOfRow(task, row), next);
    while (next < task.last && rowOfLane(task, next) === row) ++next;
  }
  assert.equal(next, task.last);
  assert.equal(laneOfRow(task, task.height), task.last);
});

test("the pointer finds every attempt of the lanes and the time that it is on", () => {
  const lanes = lanesFrom([[1, 10, 20], [1, 30, 40], [2, 12, 14]]);
  const trials = (found: number[]) => found.map((i) => lanes.parts.table.number("trial")[i]);
  assert.deepEqual(trials(partsAt(lanes, [0, 2], [12_500, 13_000])), [1, 2]);
  assert.deepEqual(trials(partsAt(lanes, [1, 2], [12_500, 13_000])), [2]);
  assert.deepEqual(partsAt(lanes, [0, 1], [50_000, 60_000]), []);
});
