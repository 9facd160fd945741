// Two trials, or experiments, side by side: nothing of either is left out, in one order.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Experiment, Trial } from "../../../web/src/api/records.js";
import {
  compareCommand, experimentSide, rowsOf, trialSide,
} from "../../../web/src/pages/compare_sides.js";
import { bothPoints } from "../../../web/src/pages/trial_parts.js";

const point = (values: Record<string, string>) =>
  Object.entries(values).map(([name, value]) => ({ name, value }));

test("a point beside the best has what only one of them has", () => {
  const order = [{ name: "model" }, { name: "c" }, { name: "trees" }, { name: "gone" }];
  const own = point({ trees: "7", model: "forest" });
  assert.deepEqual(bothPoints(order, own, point({ model: "svm", c: "0.1" })), [
    { name: "model", value: "forest", other: "svm", differs: true },
    { name: "c", value: "–", other: "0.1", differs: true },
    { name: "trees", value: "7", other: "–", differs: true },
  ]);
  assert.deepEqual(bothPoints(order, own, undefined).map((one) => [one.name, one.differs]),
    [["model", false], ["trees", false]]);
});

function experiment(name: string, metric: string, more: object = {}): Experiment {
  return {
    metadata: { name, namespace: "default" },
    spec: {
      objective: { type: "minimize", objectiveMetricName: metric },
      parameters: [{ name: "model" }, { name: "c" }, { name: "trees" }, { name: "depth" }],
    },
    ...more,
  } as unknown as Experiment;
}

test("parameters stand in the experiment's order, whichever trial comes first", () => {
  const side = (values: Record<string, string>) => trialSide({
    key: { ns: "default", name: "x" }, number: 1, experiment: experiment("x", "loss"),
    metric: "loss",
    trial: {
      metadata: { name: "x-1" }, spec: { parameterAssignments: point(values) },
      status: { shirabe: { phase: "Succeeded", objective: 1 } },
    } as unknown as Trial,
  });
  const rows = rowsOf([side({ model: "forest", trees: "5" }), side({ model: "svm", c: "2" })]);
  assert.deepEqual(rows.map((one) => one.name),
    ["state", "loss", "model", "c", "trees", "attempts", "preemptions", "ran"]);
  assert.deepEqual(rows[3]!.values, ["–", "2"]);
  assert.deepEqual(rows.at(-1)!.values, ["–", "–"]); // not known is not 0 s
});

test("what the first side lacks stands after the same row as in the other", () => {
  const side = (...names: string[]) =>
    ({ name: "", href: "", facts: names.map((name): [string, string] => [name, "1"]) });
  const rows = rowsOf([side("a", "b", "z"), side("a", "b", "c", "z"), side("0", "z", "end")]);
  assert.deepEqual(rows.map((one) => one.name), ["0", "a", "b", "c", "z", "end"]);
});

test("experiments with different objectives have a row for each, with the value of each", () => {
  const best = (values: Record<string, string>) => ({
    status: { currentOptimalTrial: {
      bestTrialName: "x-1", parameterAssignments: [],
      observation: {
        metrics: Object.entries(values).map(([name, v]) => ({ name, min: v, max: v, latest: v })),
      },
    } },
  });
  const all = [
    experiment("one", "loss", best({ loss: "0.5", error: "0.1" })),
    experiment("two", "error", best({ error: "0.2" })),
  ];
  const rows = rowsOf(all.map((one) => experimentSide(one, ["loss", "error"])));
  const row = (name: string) => rows.find((one) => one.name === name)?.values;
  assert.deepEqual(row("best trial: loss"), ["0.5", "–"]);
  assert.deepEqual(row("best trial: error"), ["0.1", "0.2"]);
  assert.deepEqual(row("cost"), ["–", "–"]);
});

test("the command has the namespace, and there is none for two namespaces", () => {
  const one = { key: { ns: "team", name: "a" }, name: "a" };
  assert.equal(compareCommand([one, { ...one, name: "b c" }]), "shirabe compare a 'b c' -n team");
  assert.equal(compareCommand([one, { key: { ns: "default", name: "b" }, name: "b" }]), undefined);
});
