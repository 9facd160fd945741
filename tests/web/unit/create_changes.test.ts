// A change of one field of a new experiment keeps the others in step.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Variant } from "../../../web/src/api/experiments.js";
import type { Experiment } from "../../../web/src/api/records.js";
import {
  addParameter, containerOf, keptSettings, removeParameter, renameParameter, withSetting, withType,
  withUnread,
} from "../../../web/src/pages/create_changes.js";

type Spec = Experiment["spec"];

function spec(command: string[], more: object = {}): Spec {
  return {
    parameters: [
      { name: "lr", parameterType: "double", feasibleSpace: { min: "0", max: "1" } },
      { name: "opt", parameterType: "categorical", feasibleSpace: { list: ["a", "b, c"] } },
    ],
    trialTemplate: {
      primaryContainerName: "training",
      trialParameters: [{ name: "rate", reference: "lr" }, { name: "opt", reference: "opt" }],
      trialSpec: { spec: { containers: [
        { name: "other", image: "x" }, { name: "training", image: "y", command },
      ] } },
    },
    ...more,
  } as unknown as Spec;
}

const COMMAND = ["run", "--rate=${trialParameters.rate}", "--opt=${trialParameters.opt}", "--end"];
const bound = (of: Spec) =>
  (of.trialTemplate as { trialParameters: { name: string; reference: string }[] }).trialParameters
    .map((one) => `${one.name}: ${one.reference}`);

test("a parameter that is renamed is still the one that the template reads", () => {
  const one = spec(COMMAND, { shirabe: { space: {
    conditions: [{ parameter: "lr", when: { opt: ["lr"] } }, { parameter: "x", when: { lr: {} } }],
    forbidden: [{ lr: { min: 1 } }], linear: [{ sum: { lr: 1, x: 2 }, max: 1 }],
    priors: { lr: { center: 1 } },
  } } });
  renameParameter(one, 0, "learning-rate");
  assert.deepEqual(bound(one), ["rate: learning-rate", "opt: opt"]);
  assert.deepEqual(containerOf(one)!.command, COMMAND); // the program knows --rate
  assert.deepEqual(one.shirabe, {
    space: {
      conditions: [{ parameter: "learning-rate", when: { opt: ["lr"] } },
        { parameter: "x", when: { "learning-rate": {} } }],
      forbidden: [{ "learning-rate": { min: 1 } }],
      linear: [{ sum: { "learning-rate": 1, x: 2 }, max: 1 }],
      priors: { "learning-rate": { center: 1 } },
    },
  });
});

test("one that is added gets an option that follows its name; one that is removed takes it", () => {
  const one = spec(COMMAND);
  addParameter(one);
  assert.equal(one.parameters!.at(-1)!.name, "parameter-3");
  assert.equal(containerOf(one)!.command![3], "--parameter-3=${trialParameters.parameter-3}");
  renameParameter(one, 2, "depth");
  assert.deepEqual(bound(one), ["rate: lr", "opt: opt", "depth: depth"]);
  assert.equal(containerOf(one)!.command![3], "--depth=${trialParameters.depth}");
  removeParameter(one, 2);
  removeParameter(one, 0);
  assert.deepEqual(bound(one), ["opt: opt"]);
  assert.deepEqual(containerOf(one)!.command, ["run", "--opt=${trialParameters.opt}", "--end"]);
});

test("where no command has such options, or there is none, only the parameter is added", () => {
  const one = spec(["run"]);
  addParameter(one);
  assert.deepEqual(containerOf(one)!.command, ["run"]);
  assert.equal(bound(one).length, 2);
  const asked = { objective: {} } as unknown as Spec;
  addParameter(asked);
  renameParameter(asked, 0, "x");
  removeParameter(asked, 0);
  assert.deepEqual(asked.parameters, []);
});

test("settings that the next algorithm knows stay, as do values of the same kind", () => {
  const variant = { settings: [{ name: "random_state" }, { name: "sigma" }] } as Variant;
  const settings = [{ name: "random_state", value: "7" }, { name: "gamma", value: "1" }];
  assert.deepEqual(keptSettings(settings, variant), [settings[0]]);
  assert.deepEqual(withSetting(settings, "gamma", ""), [settings[0]]);
  assert.deepEqual(withSetting([], "gamma", " 2 "), [{ name: "gamma", value: "2" }]);
  const [, opt] = spec([]).parameters!;
  assert.deepEqual(withType(opt!, "discrete").feasibleSpace, { list: ["a", "b, c"] });
});

test("what could not be read as a number is shown in its field as it is written", () => {
  const read = { spec: {
    objective: { goal: 1 }, parameters: [{ feasibleSpace: { max: "1" } }],
    shirabe: { budget: {} },
  } };
  const error = (field: string, message: string) => ({ level: "error" as const, field, message });
  withUnread(read as unknown as Experiment, [
    error("spec.shirabe.budget.maxCost", 'must be a number, not "$5"'),
    error("spec.maxTrialCount", "must be an integer, not the number 1.5"),
    error("spec.parameters[0].feasibleSpace.min", 'must be a number, not "a \"b\""'),
    error("spec.objective.goal", 'must be a number, not "what is there stays"'),
    error("spec.objective.type", "is required"),
    error("spec.nothing.here", 'must be a number, not "x"'),
  ]);
  assert.deepEqual(read.spec, {
    objective: { goal: 1 }, parameters: [{ feasibleSpace: { max: "1", min: 'a \"b\"' } }],
    shirabe: { budget: { maxCost: "$5" } }, maxTrialCount: "1.5",
  });
  withUnread(undefined, [error("spec.maxTrialCount", "must be an integer, not the number 1.5")]);
});
