import assert from "node:assert/strict";
import { test } from "node:test";
import type { Experiment } from "../../../web/src/api/records.js";
import type { Summary } from "../../../web/src/api/summaries.js";
import { endOf, whyOf } from "../../../web/src/state.js";

function experiment(type: string, message: string, shirabe = {}): Experiment {
  return {
    metadata: { name: "x", namespace: "default" },
    spec: { objective: { type: "minimize", objectiveMetricName: "loss" } },
    status: { conditions: [{ type, status: "True", reason: "", message }], shirabe },
  };
}

test("what has ended says why; what goes on, or failed, says it elsewhere", () => {
  assert.equal(endOf(experiment("Succeeded", "trial x-13 reached the goal")),
    "trial x-13 reached the goal");
  const stopRule = { rule: "flat", message: "no better for 20 trials" };
  assert.equal(endOf(experiment("Succeeded", "done", { stopRule })), stopRule.message);
  const plain = experiment("Succeeded", "4 trials are done");
  plain.spec.maxTrialCount = plain.status!.trialsSucceeded = 4;
  assert.equal(endOf(plain), "4 trials are done");
  plain.status!.currentOptimalTrial =
    { bestTrialName: "x-1", parameterAssignments: [], observation: { metrics: [] } };
  assert.equal(endOf(plain), "");
  assert.equal(endOf(experiment("Running", "trials are running")), "");
  assert.equal(endOf(experiment("Failed", "too many failed")), "");
});

function summary(more: Partial<Summary>): Summary {
  return {
    namespace: "default", name: "x", state: "Succeeded", message: "done", algorithm: "random",
    metric: "loss", trials: 0, trialsEnded: 0, trialsPending: 0, trialsRunning: 0,
    trialsSucceeded: 0, trialsFailed: 0, trialsKilled: 0, trialsEarlyStopped: 0,
    trialsMetricsUnavailable: 0, asOf: "", cost: 0, costPerHour: 0, currency: "USD",
    preemptions: 0, ...more,
  };
}

test("the list says why one ended early or without a result, and nothing of a plain one", () => {
  const best = { trial: 1, value: 1 };
  assert.equal(whyOf(summary({ maxTrials: 4, trialsSucceeded: 4, best })), "");
  assert.equal(whyOf(summary({ maxTrials: 60, trialsSucceeded: 13, best })), "done");
  assert.equal(whyOf(summary({ maxTrials: 4, trialsMetricsUnavailable: 4 })), "done");
  assert.equal(whyOf(summary({ state: "Running", waiting: "for a machine" })), "for a machine");
  assert.equal(whyOf(summary({ state: "Running" })), "");
  assert.equal(whyOf(summary({ state: "Failed" })), "done");
});
