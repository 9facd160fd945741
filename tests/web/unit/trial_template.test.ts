// The object that a trial runs: values put in, and parameters that do not exist left out.
import assert from "node:assert/strict";
import { test } from "node:test";
import { rendered } from "../../../web/src/trial_template.js";

const parameters = ["lr", "gamma", "kernel"].map((name) => ({ name }));
const trialParameters = [
  { name: "rate", reference: "lr" }, { name: "gamma", reference: "gamma" },
  { name: "kernel", reference: "kernel" }, { name: "self", reference: "${trialSpec.Name}" },
  { name: "team", reference: "${trialSpec.Labels[team]}" },
];

function commandOf(command: string[], assignments: Record<string, string>) {
  const trialSpec = {
    kind: "Job", metadata: { labels: { team: "blue" } },
    spec: { command, env: [{ name: "G", value: "${trialParameters.gamma}" }, { name: "A" }] },
  };
  const { spec, absent } = rendered({ trialParameters, trialSpec }, {
    name: "x-3", namespace: "ns",
    assignments: Object.entries(assignments).map(([name, value]) => ({ name, value })),
  }, parameters);
  return { ...(spec as typeof trialSpec).spec, absent };
}

test("values and the trial's own name stand where the template names them", () => {
  const { command, env, absent } = commandOf(
    ["--lr=${trialParameters.rate}", "${trialParameters.self}/${trialParameters.team}", "plain"],
    { lr: "0.1", gamma: "${trialParameters.rate}", kernel: "rbf" },
  );
  assert.deepEqual(command, ["--lr=0.1", "x-3/blue", "plain"]);
  assert.equal(env[0]!.value, "${trialParameters.rate}"); // a value is not looked at again
  assert.deepEqual(absent, []);
});

test("a parameter that the trial does not have takes its option along", () => {
  const { command, env, absent } = commandOf([
    "run", "--gamma=${trialParameters.gamma}", "--kernel", "${trialParameters.kernel}",
    "${trialParameters.gamma}", "--lr", "${trialParameters.rate}",
  ], { lr: "1" });
  assert.deepEqual(command, ["run", "${trialParameters.gamma}", "--lr", "1"]);
  assert.deepEqual(env, [{ name: "A" }]);
  assert.deepEqual(absent, ["gamma", "kernel"]);
});

test("what nothing binds stays as it is written", () => {
  const { command } = commandOf(["${trialParameters.other}"], { lr: "1", gamma: "2" });
  assert.deepEqual(command, ["${trialParameters.other}"]);
});
