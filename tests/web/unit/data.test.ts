import assert from "node:assert/strict";
import { test } from "node:test";
import type { Importance } from "../../../web/src/api/analysis.js";
import { byImportance } from "../../../web/src/api/analysis.js";
import type { Head } from "../../../web/src/api/binary.js";
import { putColumns, readArrays } from "../../../web/src/api/binary.js";
import { Column, TrialColumns, bestSoFar, varying } from "../../../web/src/api/columns.js";
import { fieldList } from "../../../web/src/api/trials.js";
import {
  makeAxis, niceValues, positionOf, qualityOf, ticksOf, valueAt,
} from "../../../web/src/axes.js";
import { drawDots } from "../../../web/src/dots.js";
import { raster, VIRIDIS } from "../../../web/src/raster.js";
import { inTurns } from "../../../web/src/turns.js";
import { everyNth, fitted, within } from "../../../web/src/ui/fit.js";
import { diffLines, scalar, toYaml } from "../../../web/src/yaml.js";

// As docs/design/formats.md describes it.
function encode(head: object, numbers: number[]): ArrayBuffer {
  const text = new TextEncoder().encode(JSON.stringify(head));
  const length = Math.ceil(text.length / 8) * 8;
  const buffer = new ArrayBuffer(16 + length + 8 * numbers.length);
  const bytes = new Uint8Array(buffer);
  bytes.set(new TextEncoder().encode("SHIRABE\u0001"));
  new DataView(buffer).setUint32(8, length, true);
  bytes.fill(0x20, 16, 16 + length);
  bytes.set(text, 16);
  new Float64Array(buffer, 16 + length).set(numbers);
  return buffer;
}

function reply(trials: number[], states: number[], dictionary: string[], loss: number[]) {
  const n = trials.length;
  return readArrays<Head>(encode({
    rows: n, total: 9, revision: 17, columns: [
      { name: "trial", kind: "number", offset: 0 },
      { name: "state", kind: "category", dictionary, offset: n },
      { name: "objective", kind: "number", offset: 2 * n },
    ],
  }, [...trials, ...states, ...loss]));
}

test("columns are read as they lie, and what has changed goes where its trial is", () => {
  const table = new TrialColumns();
  putColumns(table, reply([1, 2, 3], [1, 0, 1], ["Running", "Succeeded"], [0.5, NaN, -2]));
  // An index means nothing in another reply.
  putColumns(table, reply([2, 4], [1, 0], ["Failed", "Succeeded"], [0.25, NaN]));
  assert.equal(table.rows, 4);
  const words = [0, 1, 2, 3].map((row) => table.column("state")!.word(row));
  assert.deepEqual(words, ["Succeeded", "Succeeded", "Succeeded", "Failed"]);
  assert.deepEqual([...table.values("objective").subarray(0, 4)], [0.5, 0.25, -2, NaN]);
  assert.equal(table.trial(3), 4);
  assert.equal(table.column("objective")!.at(3), null);
});

test("parameters are in the order in which they matter, unknown ones last", () => {
  const columns = ["a", "b", "c", "d"].map((name) => ({ name: `param.${name}` }));
  const importance = { parameters: [
    { parameter: "d", total: { value: 0.5, low: 0, high: 1 } }, { parameter: "c", share: 0.7 },
  ] } as Importance;
  const order = (of: Importance | undefined) =>
    byImportance(columns, of).map((one) => one.name.slice(6)).join("");
  assert.equal(order(importance), "cdab");
  assert.equal(order(undefined), "abcd");
});

test("columns of another version are refused by name", () => {
  const buffer = encode({}, []);
  new Uint8Array(buffer)[7] = 2;
  assert.throws(() => readArrays(buffer), /another version/);
});

test("names of columns are parted as in a line of CSV", () => {
  assert.equal(fieldList(["trial", "param.a,b", 'metric."x"']), 'trial,"param.a,b","metric.""x"""');
});

test("the best so far counts what ended with a result alone, in either direction", () => {
  const table = new TrialColumns();
  const dictionary = ["Succeeded", "Running", "Failed", "EarlyStopped"];
  putColumns(table, reply([1, 2, 3, 4, 5], [2, 0, 1, 3, 0], dictionary, [9, 1, -5, 0.5, NaN]));
  assert.deepEqual([...bestSoFar(table, false)], [NaN, 1, 1, 0.5, 0.5]);
  assert.deepEqual([...bestSoFar(table, true)], [NaN, 1, 1, 1, 1]);
  // What a rule has stopped may be no result for the server.
  table.add("feasible", "number");
  for (const [row, value] of [NaN, 1, NaN, NaN, NaN].entries()) {
    table.column("feasible")!.values[row] = value;
  }
  assert.deepEqual([...bestSoFar(table, false)], [NaN, 1, 1, 1, 1]);
});

test("a column varies where two values differ, whatever is missing", () => {
  const table = new TrialColumns();
  putColumns(table, reply([1, 2, 3], [0, 0, 0], ["Running"], [NaN, 2, 3]));
  const names = (rows: number[]) => varying(table.columns, rows).map((one) => one.name);
  assert.deepEqual(names([0, 1, 2]), ["trial", "objective"]);
  assert.deepEqual(names([0, 1]), ["trial"]);
});

test("axes: negative values, logarithms, ranks, and a single value", () => {
  const table = new TrialColumns();
  putColumns(table, reply([1, 2, 3], [0, 0, 0], ["Running"], [-4, -2, -3]));
  const column = table.column("objective")!;
  const experiment = { spec: { objective: { objectiveMetricName: "loss" } } } as never;
  const linear = makeAxis(column, [0, 1, 2], "linear", experiment);
  assert.deepEqual([linear.low, linear.high], [-4, -2]);
  assert.equal(positionOf(linear, -3), 0.5);
  assert.equal(makeAxis(column, [0, 1, 2], "log", experiment).scale, "linear");
  const rank = makeAxis(column, [0, 1, 2], "quantile", experiment);
  assert.deepEqual([-4, -3, -2].map((v) => positionOf(rank, v)), [0, 0.5, 1]);
  const one = makeAxis(column, [0], "linear", experiment);
  assert.ok(one.low < -4 && one.high > -4);
  const log = makeAxis(table.column("trial")!, [0, 1, 2], "log", experiment);
  assert.ok(Math.abs(valueAt(log, positionOf(log, 2)) - 2) < 1e-12);
  assert.deepEqual(niceValues(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
});

test("an axis has two numbers at least, and they can be told apart", () => {
  const ticks = (low: number, high: number) =>
    ticksOf({
      column: new Column("x", "number"), name: "x", scale: "linear", low, high, sorted: null,
    }, 4).map((one) => one.text);
  assert.deepEqual(ticks(0.104, 0.967), ["0.2", "0.4", "0.6", "0.8"]);
  for (const [low, high] of [[0.07, 0.97], [1.3, 3.9], [999.9985, 1000.0012]] as const) {
    const texts = ticks(low, high);
    assert.ok(texts.length > 1 && new Set(texts).size === texts.length, texts.join());
  }
});

test("a text that is cut says so, and one at the edge moves in", () => {
  const context = { measureText: (text: string) => ({ width: 10 * text.length }) };
  assert.equal(fitted(context, "linear", 60), "linear");
  assert.equal(fitted(context, "logarithmic", 60), "logar…");
  assert.equal(fitted(context, "logarithmic", 5), "…");
  assert.deepEqual([5, 50, 95].map((x) => within(x, 30, [0, 100])), [15, 50, 85]);
});

test("quality is by rank, and points to what is better", () => {
  const values = Float64Array.from([3, NaN, 1, 1e9]);
  assert.deepEqual([...qualityOf(values, 4, false)], [0.5, NaN, 1, 0]);
  assert.deepEqual([...qualityOf(values, 4, true)], [0.5, NaN, 0, 1]);
});

test("a picture of lines: where they are, how many, and nothing where a value is missing", () => {
  const task = {
    width: 40, height: 20, foot: 0, x: [0, 39], colours: VIRIDIS,
    faint: [9, 9, 9] as [number, number, number],
    positions: [Float32Array.from([0, NaN, 1]), Float32Array.from([0, 1, 1])],
    quality: Float32Array.from([1, 1, 0]), chosen: Uint8Array.from([1, 1, 0]),
  };
  const pixels = raster(task);
  const alpha = (x: number, y: number) => pixels[4 * (y * 40 + x) + 3]!;
  assert.ok(alpha(20, 17) > 100, "the chosen line lies at the bottom");
  assert.ok(alpha(20, 2) > 0 && alpha(20, 2) < 100, "the other one is faint, at the top");
  assert.equal(alpha(20, 10), 0, "the line without a value is nowhere");
});

test("a line without a value goes on through the lane beneath the axes", () => {
  const pixels = raster({
    width: 40, height: 30, foot: 10, x: [0, 19, 39], colours: VIRIDIS, faint: [9, 9, 9],
    positions: [[0, 1], [NaN, 1], [NaN, 0]].map((one) => Float32Array.from(one)),
    quality: Float32Array.from([1, NaN]), chosen: Uint8Array.from([1, 1]),
  });
  const alpha = (x: number, y: number) => pixels[4 * (y * 40 + x) + 3]!;
  assert.ok(alpha(0, 17) > 100, "it begins at the bottom of its axis");
  assert.ok(alpha(30, 25) > 100, "and goes on in the middle of the lane");
  assert.ok(alpha(39, 17) > 100, "the other one ends at the bottom of the axis, not in the lane");
});

// Axes of few values, whose lines are drawn together, and the same by a hair apart, one by one.
test("lines that share their ends look as if each was drawn by itself", () => {
  const trials = 3000;
  const levels = (axis: number, apart: number) => Float32Array.from({ length: trials },
    (_, i) => (i % 41 === 0 ? NaN : ((i * (axis + 1) + (i >> 3)) % 5) / 5 + apart * (i % 97)));
  const picture = (apart: number) => raster({
    width: 60, height: 50, foot: 10, x: [0, 29, 59], colours: VIRIDIS, faint: [9, 9, 9],
    positions: [0, 1, 2].map((axis) => levels(axis, apart)),
    quality: Float32Array.from({ length: trials }, (_, i) => (i % 11 === 0 ? NaN : (i % 7) / 7)),
    chosen: Uint8Array.from({ length: trials }, (_, i) => (i % 3 === 0 ? 1 : 0)),
  });
  const [together, each] = [picture(0), picture(1e-7)];
  const differ = together.filter((one, i) => Math.abs(one - each[i]!) > 3).length;
  assert.ok(together.some((one) => one > 0) && differ < together.length / 200, `${differ} differ`);
});

test("YAML: what would be read as another type is quoted", () => {
  const quoted = ["no", "1e-5", "0x1", "", " x", "a: b", "#c", "-", "null", "~", "@a", "é", "---",
    "- x", "{a}", "*x", "12abc"];
  for (const text of quoted) {
    assert.equal(scalar(text), JSON.stringify(text), text);
  }
  for (const text of ["adam", "python3", "--lr=${trialParameters.lr}", "batch/v1"]) {
    assert.equal(scalar(text), text);
  }
  assert.equal(
    toYaml({ a: [1, { b: "x", c: [] }], d: {}, e: "one\ntwo\n", f: undefined }),
    "a:\n  - 1\n  - b: x\n    c: []\nd: {}\ne: |\n  one\n  two\n",
  );
});

test("a difference shows each line once, as little as can be", () => {
  const lines = diffLines("a\nb\nc\nd", "a\nx\nc\nd\ne");
  assert.deepEqual(lines.map((one) => `${one.kind[0]}${one.text}`),
    ["sa", "db", "ax", "sc", "sd", "ae"]);
});

test("equal results are equally good, and any number of them is ranked at once", () => {
  assert.deepEqual([...qualityOf(Float64Array.from([2, 1, 2, 3]), 4, true)], [0.5, 0, 0.5, 1]);
  assert.deepEqual([...qualityOf(Float64Array.from([5]), 1, false)], [1]);
  const same = qualityOf(new Float64Array(200_000).fill(7), 200_000, false);
  assert.equal(same[0], 0.5);
  assert.equal(same[199_999], 0.5);
});

test("dots of one pixel become one of their mean colour, and all of them are counted", () => {
  const work = drawDots({
    width: 4, height: 3, x: Float32Array.from([1.2, 1.9, 3, NaN, -1]),
    y: Float32Array.from([0.5, 0.1, 2, 1, 1]), quality: Float32Array.from([0, 1, 1, 1, 1]),
    colours: [[0, 0, 0], [200, 100, 50]],
  });
  let step = work.next();
  while (!step.done) step = work.next();
  const { pixels, dots, taken } = step.value;
  assert.deepEqual([dots, taken], [3, 2]);
  assert.deepEqual([...pixels.slice(4, 8)], [100, 50, 25, 214]); // two of them
  assert.deepEqual([...pixels.slice(44, 48)], [200, 100, 50, 153]); // one
  assert.equal(pixels.filter((_, i) => i % 4 === 3 && pixels[i]! > 0).length, 2);
});

test("long work is done in turns between which others run, and stops where given up", async () => {
  let [steps, others] = [0, 0];
  const seen = new Set<number>();
  function* work(): Generator<void, string> {
    for (; steps < 60; ++steps) {
      const until = performance.now() + 1;
      while (performance.now() < until);
      seen.add(others);
      yield;
    }
    return "done";
  }
  let going = true;
  const other = () => void (++others, going && setImmediate(other));
  setImmediate(other);
  assert.equal(await inTurns(work(), new AbortController().signal), "done");
  going = false;
  assert.ok(seen.size >= 3, `all of it in ${seen.size} turns`);
  steps = 0;
  const abort = new AbortController();
  const given = inTurns(work(), abort.signal);
  abort.abort();
  assert.equal(await given, null);
  assert.equal(steps, 0);
});

test("of many names side by side some are left out, so that the others can be read", () => {
  assert.deepEqual([1, 2, 6].map((n) => everyNth(n, 230)), [1, 1, 1]);
  assert.equal(everyNth(12, 230), 2);
  assert.equal(everyNth(100, 230), 16);
});
