import assert from "node:assert/strict";
import { test } from "node:test";
import { TrialColumns, bestSoFar } from "../../../web/src/api/columns.js";
import type { Experiment } from "../../../web/src/api/records.js";
import {
  brokenBy, constraintWords, constraintsOf, hasFront, neededColumns, objectivesOf, putBreaks,
} from "../../../web/src/objectives.js";
import { changedObjective } from "../../../web/src/pages/create_results.js";
import {
  Standing, frontOf, lossesOf, pickByWeights, standingsOf, stepLine,
} from "../../../web/src/pareto.js";

// The same numbers each time, in (0, 1): Park and Miller.
function random(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48271) % 2147483647) / 2147483647;
}

function all(n: number): number[] {
  return Array.from({ length: n }, (_, i) => i);
}

// By the definition: each with each; of equal ones the first.
function slowFront(losses: Float64Array[], rows: number[]): number[] {
  const asGood = (a: number, b: number) => losses.every((one) => one[a]! <= one[b]!);
  return rows.filter((b) => !rows.some((a) =>
    a !== b && asGood(a, b) && (!asGood(b, a) || a < b)));
}

test("the front of two to five objectives is that of the definition, equal values and all", () => {
  const next = random(7);
  for (const objectives of [2, 3, 4, 5]) {
    for (const levels of [2, 5, 1000]) {
      const n = 600;
      // Negative, zero and positive; few levels make many equal ones.
      const losses = all(objectives).map(() =>
        Float64Array.from({ length: n }, () => Math.floor(next() * levels) - levels / 2));
      const rows = all(n).filter((row) => row % 7 !== 0);
      const sorted = (found: number[]) => [...found].sort((a, b) => a - b);
      assert.deepEqual(sorted(frontOf(losses, rows)), slowFront(losses, rows),
        `${objectives} objectives of ${levels} levels`);
    }
  }
});

test("a front is in order of its first loss; of equal points it has that of the least rank", () => {
  const losses = [Float64Array.from([3, 1, 2, 1, 3]), Float64Array.from([-1, 5, 0, 5, -1])];
  assert.deepEqual(frontOf(losses, all(5)), [1, 2, 0]);
  assert.deepEqual(frontOf(losses, all(5), (row) => -row), [3, 2, 4]);
  assert.deepEqual(frontOf(losses, []), []);
  assert.deepEqual(frontOf(losses, [4]), [4]);
});

test("100,000 trials that are all on the front take no time in proportion to their square", () => {
  const n = 100_000;
  const next = random(3);
  const two = [Float64Array.from(all(n)), Float64Array.from(all(n), (i) => -i)];
  const angles = all(n).map(() => [next() * Math.PI / 2, next() * Math.PI / 2] as const);
  const sphere = [
    Float64Array.from(angles, ([a, b]) => -Math.cos(a) * Math.cos(b)),
    Float64Array.from(angles, ([a, b]) => -Math.cos(a) * Math.sin(b)),
    Float64Array.from(angles, ([a]) => -Math.sin(a)),
  ];
  for (const losses of [two, sphere]) {
    const start = performance.now();
    assert.ok(frontOf(losses, all(n)).length > 0.999 * n);
    const took = performance.now() - start;
    assert.ok(took < 8000, `${losses.length} objectives: ${took} ms`); // n² / 2 takes minutes
  }
});

const experiment = {
  spec: {
    objective: { type: "minimize", objectiveMetricName: "loss" },
    shirabe: {
      objectiveReference: 9,
      additionalObjectives: [{ metricName: "accuracy", type: "maximize" }],
      constraints: [{ metricName: "memory", max: 8 }, { metricName: "loss", min: -10, max: 10 }],
    },
  },
} as unknown as Experiment;

interface Row {
  state: string;
  loss?: number;
  accuracy?: number;
  memory?: number;
}

function tableOf(rows: Row[]): TrialColumns {
  const table = new TrialColumns();
  table.needed = neededColumns(experiment);
  const state = table.add("state", "category");
  for (const name of ["objective", "metric.accuracy", "metric.memory", "end"]) {
    table.add(name, "number");
  }
  rows.forEach((one, i) => {
    const row = table.rowFor(i + 1);
    state.values[row] = state.code(one.state);
    table.column("objective")!.values[row] = one.loss ?? NaN;
    table.column("metric.accuracy")!.values[row] = one.accuracy ?? NaN;
    table.column("metric.memory")!.values[row] = one.memory ?? NaN;
    table.column("end")!.values[row] = 100 - i; // the last has ended first
  });
  putBreaks(table, experiment);
  return table;
}

const ended = (loss: number, accuracy: number, memory = 1): Row =>
  ({ state: "Succeeded", loss, accuracy, memory });

test("objectives and constraints of a specification, and where their values are", () => {
  assert.equal(hasFront(experiment), true);
  assert.deepEqual(objectivesOf(experiment), [
    { metric: "loss", column: "objective", maximize: false, reference: 9 },
    { metric: "accuracy", column: "metric.accuracy", maximize: true, reference: NaN },
  ]);
  assert.deepEqual(constraintsOf(experiment).map(constraintWords),
    ["memory ≤ 8", "loss -10 .. 10"]);
  assert.deepEqual(neededColumns(experiment), ["objective", "metric.accuracy", "metric.memory"]);
  const [memory, loss] = constraintsOf(experiment);
  assert.deepEqual([7, 8, 9.5, NaN].map((value) => brokenBy(memory!, value)), [0, 0, 1.5, 0]);
  assert.deepEqual([-12, -10, 11].map((value) => brokenBy(loss!, value)), [2, 0, 1]);
});

test("what a trial is: open, without a result, broken, kept or on the front", () => {
  const table = tableOf([
    ended(-2, 0.5), ended(-1, 0.9), ended(-3, 0.2), ended(-1, 0.8),
    ended(-4, 0.95, 9), // better than all, and breaks a constraint
    ended(-2, 0.5), // as good as the first
    { state: "Succeeded", loss: -9, memory: 1 }, // no accuracy
    { state: "Failed", loss: -9, accuracy: 1, memory: 1 },
    { state: "Running", loss: -9, accuracy: 1, memory: 1 },
  ]);
  const { Open, Without, Broken, Kept, Front } = {
    Open: Standing.Open, Without: Standing.Without, Broken: Standing.Broken, Kept: Standing.Kept,
    Front: Standing.Front,
  };
  const { of, front } = standingsOf(table, experiment, new Set());
  assert.deepEqual([...of], [Front, Front, Front, Kept, Broken, Kept, Without, Without, Open]);
  assert.deepEqual(front.map((row) => table.trial(row)), [3, 1, 2]);
  // Of equal ones that which the server has on its front, else the lowest number.
  assert.deepEqual(standingsOf(table, experiment, new Set([6])).front, [2, 5, 1]);
  assert.equal(table.column("breaks")!.word(4), "memory");
  assert.deepEqual(standingsOf(tableOf([]), experiment, new Set()).front, []);
});

test("the best so far neither breaks a constraint nor lacks a metric", () => {
  const table = tableOf([
    ended(3, 0.5), ended(-4, 0.9, 9), { state: "Succeeded", loss: -9, memory: 1 }, ended(1, 0.2),
  ]);
  assert.deepEqual([...bestSoFar(table, false)], [3, 3, 3, 1]);
});

test("the column of what is broken follows the values as they come", () => {
  const table = tableOf([ended(-20, 0.5, 9), ended(0, 0.5)]);
  assert.equal(table.column("breaks")!.word(0), "memory, loss");
  table.column("objective")!.values[0] = 0;
  table.column("metric.memory")!.values[1] = 10;
  putBreaks(table, experiment);
  assert.deepEqual([0, 1].map((row) => table.column("breaks")!.word(row)), ["memory", "memory"]);
});

test("the line of a front turns at the point as poor as both, whichever way is better", () => {
  const line = stepLine([[1, 9], [4, 5], [6, 2]], { x: 10, y: 12 });
  assert.deepEqual(line, [[1, 12], [1, 9], [4, 9], [4, 5], [6, 5], [6, 2], [10, 2]]);
  // Both to be great: the best x is at the right, the worst at the edges 0.
  assert.deepEqual(stepLine([[6, 2], [4, 5]], { x: 0, y: 0 }),
    [[6, 0], [6, 2], [4, 2], [4, 5], [0, 5]]);
  assert.deepEqual(stepLine([], { x: 0, y: 0 }), []);
});

test("losses turn what is to be great, and leave the columns alone", () => {
  const table = tableOf([ended(-2, 0.5)]);
  assert.deepEqual(lossesOf(table, objectivesOf(experiment)).map((one) => one[0]), [-2, -0.5]);
  assert.equal(table.values("metric.accuracy")[0], 0.5);
});

test("weights weigh parts of the range of each loss, the lowest row of equal sums wins", () => {
  const losses = [[3, 2, 1, 0], [-0.2, -0.5, -0.9, -9]].map((one) => Float64Array.from(one));
  const front = [2, 1, 0]; // row 3 is not on it
  const pick = (...weights: number[]) => pickByWeights(losses, front, weights);
  assert.equal(pick(1, 0), 2);
  assert.equal(pick(0, 1), 2);
  assert.equal(pickByWeights(losses, [0, 1], [1, 0]), 1);
  const apart = [[-3, -2, -1], [-0.2, -0.5, -0.9].map((one) => -one)]
    .map((one) => Float64Array.from(one));
  const among = (...weights: number[]) => pickByWeights(apart, [2, 0, 1], weights);
  assert.equal(among(1, 0), 0);
  assert.equal(among(0, 1), 0);
  const against = [[0, 1, 2], [2, 1.5, 0]].map((one) => Float64Array.from(one));
  const choose = (...weights: number[]) => pickByWeights(against, [0, 1, 2], weights);
  assert.equal(choose(1, 1), 0); // 0 + 1, 0.5 + 0.75, 1 + 0: the first of equal ones
  assert.equal(pickByWeights(against, [2, 1, 0], [1, 1]), 0);
  assert.equal(choose(1, 1.1), 2);
  assert.equal(choose(0, 0), -1);
  assert.equal(pickByWeights(against, [], [1, 1]), -1);
  // An objective of one value has no range, and does not decide.
  const flat = [[5, 5], [0.5, 0.2]].map((one) => Float64Array.from(one));
  assert.equal(pickByWeights(flat, [0, 1], [9, 1]), 1);
});

test("another first objective leaves what counts of the others as it is", () => {
  const spec = {
    ...experiment.spec,
    objective: {
      type: "minimize", objectiveMetricName: "loss", goal: 1,
      metricStrategies: [
        { name: "loss", value: "min" }, { name: "accuracy", value: "max" },
        { name: "other", value: "min" },
      ],
    },
  } as Experiment["spec"];
  assert.deepEqual(changedObjective(spec, { type: "maximize" }), {
    type: "maximize", objectiveMetricName: "loss", goal: 1,
    metricStrategies: [{ name: "accuracy", value: "max" }],
  });
  const plain = { objective: { type: "minimize", objectiveMetricName: "a",
    metricStrategies: [{ name: "a", value: "min" }] } } as Experiment["spec"];
  assert.deepEqual(changedObjective(plain, { objectiveMetricName: "b" }),
    { type: "minimize", objectiveMetricName: "b" });
});
