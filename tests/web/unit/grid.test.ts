// What a click on a heading sorts by, and which column is meant for the best first.
import assert from "node:assert/strict";
import { test } from "node:test";
import { TrialColumns } from "../../../web/src/api/columns.js";
import type { Experiment } from "../../../web/src/api/records.js";
import type { Column } from "../../../web/src/ui/grid.js";
import { nextSort } from "../../../web/src/ui/grid.js";
import { gridColumn } from "../../../web/src/ui/trial_columns.js";

function clicks(column: Column): string[] {
  const first = nextSort(column, "another");
  const second = nextSort(column, first);
  return [first, second, nextSort(column, second)];
}

const column = (more: Partial<Column>): Column =>
  ({ id: "x", name: "X", width: "1rem", cell: () => "", ...more });

test("three clicks are one order, the other, and none", () => {
  assert.deepEqual(clicks(column({})), ["x", "~x", ""]);
  assert.deepEqual(clicks(column({ number: true })), ["~x", "x", ""]);
  assert.deepEqual(clicks(column({ number: true, ascends: true })), ["x", "~x", ""]);
});

test("an objective is sorted by its best first", () => {
  const table = new TrialColumns();
  const experiment = { spec: {
    objective: { type: "minimize", objectiveMetricName: "loss" },
    shirabe: { additionalObjectives: [{ metricName: "speed", type: "maximize" }] },
  } } as unknown as Experiment;
  const rows = { key: { ns: "default", name: "x" }, table, experiment, at: (row: number) => row };
  const first = (name: string) =>
    clicks(gridColumn(table.add(name, "number"), rows))[0];
  assert.equal(first("objective"), "objective");
  assert.equal(first("metric.speed"), "~metric.speed");
  assert.equal(first("cost"), "~cost");
});
