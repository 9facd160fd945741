// What is said of each experiment, or trial, of a comparison, and in which order. Pure functions.
import type { Key } from "../api/experiments.js";
import type { Experiment, Trial } from "../api/records.js";
import { numberOf } from "../api/records.js";
import { duration, known, money, shellWord, short, word } from "../format.js";
import { hasFront } from "../objectives.js";
import {
  algorithmOf, bestOf, completedTrials, currencyOf, lookOf, metricValue, stateOf,
  trialState,
} from "../state.js";
import { link } from "../url.js";
import { namespaceFlag } from "./context.js";
import { brokenIn } from "./trial_results.js";

export interface Side {
  name: string;
  href: string;
  facts: [name: string, value: string | undefined][]; // undefined: it has no such thing
}

export interface Row {
  name: string;
  values: string[];
  differs: boolean;
}

// The rows of all sides. What the first one lacks stands where the other one has it: after the same
// row.
export function rowsOf(sides: Side[]): Row[] {
  const names: string[] = [];
  for (const { facts } of sides) {
    let before = -1;
    for (const [name] of facts) {
      const at = names.indexOf(name);
      if (at < 0) names.splice(++before, 0, name);
      else before = at;
    }
  }
  const values = sides.map((one) => new Map(one.facts));
  return names.flatMap((name) => {
    const found = values.map((one) => one.get(name));
    if (found.every((one) => one === undefined)) return [];
    const shown = found.map((one) => word(one ?? "–"));
    return [{ name, values: shown, differs: new Set(shown).size > 1 }];
  });
}

// Of experiments or trials of one namespace: the command reads no more than one.
export function compareCommand(named: { key: Key; name: string }[]): string | undefined {
  const [first] = named;
  if (!first || named.some((one) => one.key.ns !== first.key.ns)) return undefined;
  const names = named.map((one) => shellWord(one.name)).join(" ");
  return `shirabe compare ${names}${namespaceFlag(first.key)}`;
}

// The value of a metric at the best trial, whether or not it is what made that trial the best.
function atBest(experiment: Experiment, metric: string): string | undefined {
  if (metric === experiment.spec.objective.objectiveMetricName) return short(bestOf(experiment));
  const metrics = experiment.status?.currentOptimalTrial?.observation.metrics ?? [];
  const value = metricValue(experiment, metrics, metric);
  return Number.isNaN(value) ? undefined : short(value);
}

// `metrics`: the first objectives of all that are compared.
export function experimentSide(experiment: Experiment, metrics: string[]): Side {
  const { name, namespace } = experiment.metadata;
  const status = experiment.status ?? {};
  const extras = status.shirabe ?? {};
  const best = status.currentOptimalTrial?.parameterAssignments ?? [];
  const preemptions = extras.preemptions ?? 0;
  const facts: Side["facts"] = [
    ["state", lookOf(stateOf(experiment)).word],
    ["algorithm", algorithmOf(experiment)],
    ...metrics.map((metric): Side["facts"][number] => [
      metrics.length > 1 ? `best trial: ${metric}` : `best ${metric}`, atBest(experiment, metric),
    ]),
  ];
  if (hasFront(experiment)) {
    facts.push(["on the front", String(extras.front?.size ?? 0)],
      ["hypervolume", short(extras.front?.hypervolume)]);
  }
  facts.push(
    ["trials completed", String(completedTrials(experiment))],
    ["failed", String(status.trialsFailed ?? 0)],
    ["computed", known(extras.seconds ?? 0)],
    ["cost", extras.cost ? money(extras.cost, currencyOf(experiment)) : "–"],
    ["preemptions", String(preemptions)],
    ["lost to them", preemptions === 0 ? "nothing" : duration(extras.wastedSeconds ?? 0)],
    ...(experiment.spec.parameters ?? []).map((one): Side["facts"][number] => [
      `best: ${one.name}`, best.find((other) => other.name === one.name)?.value,
    ]),
  );
  return { name, href: link(["e", namespace, name]), facts };
}

export interface OneTrial {
  key: Key;
  number: number;
  experiment: Experiment;
  trial: Trial;
  metric: string;
}

export function trialSide({ key, number, experiment, trial, metric }: OneTrial): Side {
  const extras = trial.status.shirabe;
  const facts: Side["facts"] = [
    ["state", lookOf(trialState(trial)).word],
    [metric, short(numberOf(extras.objective))],
  ];
  for (const further of extras.objectives?.slice(1) ?? []) {
    facts.push([further.metricName, short(numberOf(further.value))]);
  }
  if (extras.constraints) facts.push(["breaks", brokenIn(extras) || "nothing"]);
  for (const one of trial.status.observation?.metrics ?? []) {
    facts.push([`${one.name}, last`, short(numberOf(one.latest))]);
  }
  const own = trial.spec.parameterAssignments;
  for (const { name } of experiment.spec.parameters ?? own) {
    facts.push([name, own.find((one) => one.name === name)?.value]);
  }
  facts.push(
    ["attempts", String(extras.attempts ?? 0)],
    ["preemptions", String(extras.preemptions ?? 0)],
    ["ran", known(extras.seconds ?? 0)],
  );
  return { name: trial.metadata.name, href: link(["t", key.ns, key.name, number]), facts };
}
