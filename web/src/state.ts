// What is known of experiments and trials, in words: states, progress, why something waits. Pure
// functions of records.
import type { Experiment, Metric, Trial } from "./api/records.js";
import { numberOf } from "./api/records.js";
import type { Summary } from "./api/summaries.js";
import { count, short } from "./format.js";

export type Tone = "wait" | "run" | "good" | "bad" | "early" | "lost" | "pause";
export type Shape = "ring" | "play" | "check" | "cross" | "half" | "slash" | "bars" | "bolt";

export interface Look {
  tone: Tone;
  shape: Shape;
  word: string;
}

const LOOKS: Record<string, [Tone, Shape, string]> = {
  Created: ["wait", "ring", "created"],
  Pending: ["wait", "ring", "pending"],
  Running: ["run", "play", "running"],
  Restarting: ["run", "play", "restarting"],
  Succeeded: ["good", "check", "succeeded"],
  Failed: ["bad", "cross", "failed"],
  EarlyStopped: ["early", "half", "stopped early"],
  Killed: ["lost", "slash", "killed"],
  MetricsUnavailable: ["bad", "slash", "no metrics"],
  Paused: ["pause", "bars", "paused"],
  Stopping: ["pause", "half", "stopping"],
  Infeasible: ["bad", "slash", "infeasible"],
  Skipped: ["lost", "slash", "skipped"],
};

// A state that this page does not know is shown by its own word.
export function lookOf(state: string): Look {
  const [tone, shape, word] = LOOKS[state] ?? ["wait", "ring", state];
  return { tone, shape, word };
}

const ENDED = new Set(["Succeeded", "Failed"]);

export function stateOf(experiment: Experiment): string {
  const conditions = experiment.status?.conditions ?? [];
  const current = conditions.filter((one) => one.status === "True").at(-1)?.type ?? "Created";
  if (ENDED.has(current)) return current;
  if (experiment.status?.shirabe?.stopping) return "Stopping";
  if (experiment.status?.shirabe?.paused) return "Paused";
  return current;
}

export function isEnded(experiment: Experiment): boolean {
  return isEndState(stateOf(experiment));
}

export function isEndState(state: string): boolean {
  return ENDED.has(state);
}

// Why it is in this state, where there is more to say than the word.
export function reasonOf(experiment: Experiment): string {
  const conditions = experiment.status?.conditions ?? [];
  const current = conditions.filter((one) => one.status === "True").at(-1);
  const waiting = experiment.status?.shirabe?.waiting ?? "";
  if (waiting !== "" && !isEnded(experiment)) return waiting;
  return current?.message ?? "";
}

// All of its trials are done, and one of them is the best: there is nothing to explain.
function isPlainEnd(counts: TrialCounts, hasBest: boolean): boolean {
  return hasBest && completed(counts) >= (counts.max ?? Infinity);
}

// Why it ended; nothing of one that goes on, or failed (that has a banner of its own).
export function endOf(experiment: Experiment): string {
  if (stateOf(experiment) !== "Succeeded") return "";
  const rule = experiment.status?.shirabe?.stopRule?.message;
  const plain = isPlainEnd(countsOf(experiment), bestNumber(experiment) > 0);
  return rule ?? (plain ? "" : reasonOf(experiment));
}

// States that leave the question why.
const ASKED_WHY = ["Created", "Paused", "Failed", "Stopping"];

// What the list says beside a state: why it waits, failed, or ended before its last trial or
// without any result.
export function whyOf(summary: Summary): string {
  const { state, message = "", waiting = "" } = summary;
  if (waiting !== "" && !isEndState(state)) return waiting;
  const asked = ASKED_WHY.includes(state) ||
    (state === "Succeeded" && !isPlainEnd(countsIn(summary), summary.best !== undefined));
  return asked ? message : "";
}

// What became of an experiment's trials, from its record or from its summary.
export interface TrialCounts {
  succeeded: number;
  earlyStopped: number;
  failed: number;
  withoutMetrics: number;
  killed: number;
  running: number;
  pending: number;
  max: number | undefined;
}

export function countsOf(experiment: Experiment): TrialCounts {
  const status = experiment.status ?? {};
  return {
    succeeded: status.trialsSucceeded ?? 0,
    earlyStopped: status.trialsEarlyStopped ?? 0,
    failed: status.trialsFailed ?? 0,
    withoutMetrics: status.trialMetricsUnavailable ?? 0,
    killed: status.trialsKilled ?? 0,
    running: status.trialsRunning ?? 0,
    pending: status.trialsPending ?? 0,
    max: experiment.spec.maxTrialCount,
  };
}

export function countsIn(summary: Summary): TrialCounts {
  return {
    succeeded: summary.trialsSucceeded,
    earlyStopped: summary.trialsEarlyStopped,
    failed: summary.trialsFailed,
    withoutMetrics: summary.trialsMetricsUnavailable,
    killed: summary.trialsKilled,
    running: summary.trialsRunning,
    pending: summary.trialsPending,
    max: summary.maxTrials,
  };
}

export function finishedTrials(experiment: Experiment): number {
  const counts = countsOf(experiment);
  return completed(counts) + counts.failed + counts.killed;
}

// Of the trials that count towards maxTrialCount.
export function completed(counts: TrialCounts): number {
  return counts.succeeded + counts.earlyStopped + counts.withoutMetrics;
}

export function completedTrials(experiment: Experiment): number {
  return completed(countsOf(experiment));
}

export function maximizes(experiment: Experiment): boolean {
  return experiment.spec.objective.type === "maximize";
}

export function currencyOf(experiment: Experiment): string {
  return experiment.spec.shirabe?.budget?.currency ?? "USD";
}

export function algorithmOf(experiment: Experiment): string {
  const chosen = experiment.status?.shirabe?.["algorithm"];
  const named = experiment.spec.algorithm?.algorithmName ?? "auto";
  return typeof chosen === "string" && chosen !== "" && chosen !== named
    ? `${named}: ${chosen}`
    : named;
}

// The value of a metric that counts, by the experiment's strategy for it.
export function metricValue(experiment: Experiment, metrics: Metric[], name: string): number {
  const found = metrics.find((one) => one.name === name);
  if (!found) return NaN;
  return numberOf(found[strategyOf(experiment, name)]);
}

function strategyOf(experiment: Experiment, name: string): "min" | "max" | "latest" {
  const strategies = experiment.spec.objective.metricStrategies ?? [];
  const found = strategies.find((one) => one.name === name);
  return found?.value ?? (maximizes(experiment) ? "max" : "min");
}

export function bestOf(experiment: Experiment): number {
  const best = experiment.status?.currentOptimalTrial;
  if (!best) return NaN;
  const name = experiment.spec.objective.objectiveMetricName;
  return metricValue(experiment, best.observation.metrics, name);
}

export function bestNumber(experiment: Experiment): number {
  return trialNumberIn(experiment.status?.currentOptimalTrial?.bestTrialName ?? "");
}

// Of a trial by its name: digits-7 is 7.
export function trialNumberIn(trialName: string): number {
  return Number(/-(\d+)$/.exec(trialName)?.[1] ?? 0);
}

export function trialState(trial: Trial): string {
  const { phase, infeasible } = trial.status.shirabe;
  return infeasible ? "Infeasible" : phase;
}

// One sentence for those who do not see the page.
export function experimentSummary(experiment: Experiment): string {
  const max = experiment.spec.maxTrialCount;
  const metric = experiment.spec.objective.objectiveMetricName;
  const best = bestOf(experiment);
  return (
    `${lookOf(stateOf(experiment)).word}; ${count(completedTrials(experiment))}` +
    `${max === undefined ? "" : ` of ${count(max)}`} trials completed; ` +
    (Number.isNaN(best) ? "no result yet" : `best ${metric} ${short(best)}`)
  );
}
