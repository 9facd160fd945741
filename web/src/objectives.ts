// What an experiment optimises beside its first objective, what results must keep, and what its
// trials make of both. Pure functions of records and columns.
import type { TrialColumns } from "./api/columns.js";
import type { Experiment } from "./api/records.js";
import { numberOf } from "./api/records.js";
import { short } from "./format.js";

export interface Objective {
  metric: string;
  column: string; // that has its values
  maximize: boolean;
  reference: number; // as specified; NaN: the worst result so far
}

export interface Constraint {
  metric: string;
  column: string;
  min: number; // -Infinity: none
  max: number;
}

// Of the first objective's metric the column `objective` has what counts.
function columnOf(metric: string, experiment: Experiment): string {
  return metric === experiment.spec.objective.objectiveMetricName ? "objective"
    : `metric.${metric}`;
}

// The first is spec.objective, the others are in the order of the specification.
export function objectivesOf(experiment: Experiment): Objective[] {
  const { objective, shirabe } = experiment.spec;
  const first = {
    metricName: objective.objectiveMetricName, type: objective.type,
    reference: shirabe?.objectiveReference,
  };
  return [first, ...(shirabe?.additionalObjectives ?? [])].map((one) => ({
    metric: one.metricName, column: columnOf(one.metricName, experiment),
    maximize: one.type === "maximize", reference: numberOf(one.reference),
  }));
}

export function hasFront(experiment: Experiment): boolean {
  return (experiment.spec.shirabe?.additionalObjectives ?? []).length > 0;
}

export function constraintsOf(experiment: Experiment): Constraint[] {
  return (experiment.spec.shirabe?.constraints ?? []).map((one) => ({
    metric: one.metricName, column: columnOf(one.metricName, experiment),
    min: one.min === undefined ? -Infinity : numberOf(one.min),
    max: one.max === undefined ? Infinity : numberOf(one.max),
  }));
}

// What a trial must have reported to have a result.
export function neededColumns(experiment: Experiment): string[] {
  const all = [...objectivesOf(experiment), ...constraintsOf(experiment)];
  return [...new Set(all.map((one) => one.column))];
}

// As the command line says it: "memory ≤ 16", "loss 0.1 .. 0.3"
export function constraintWords({ metric, min, max }: Omit<Constraint, "column">): string {
  if (min !== -Infinity && max !== Infinity) return `${metric} ${short(min)} .. ${short(max)}`;
  return min !== -Infinity ? `${metric} ≥ ${short(min)}` : `${metric} ≤ ${short(max)}`;
}

// How far a value is outside; 0 where it is kept, or there is none.
export function brokenBy({ min, max }: { min: number; max: number }, value: number): number {
  return Number.isFinite(value) ? Math.max(0, min - value, value - max) : 0;
}

// "memory by 0.2, size by 3"; "" where nothing is broken.
export function brokenWords(
  constraints: Constraint[], table: TrialColumns, row: number,
): string {
  return constraints.flatMap((one) => {
    const by = brokenBy(one, table.values(one.column)[row]!);
    return by > 0 ? [`${one.metric} by ${short(by)}`] : [];
  }).join(", ");
}

// The column `breaks`: the metrics of the constraints that a trial does not keep.
export function putBreaks(table: TrialColumns, experiment: Experiment): void {
  const constraints = constraintsOf(experiment);
  if (constraints.length === 0) return;
  const column = table.add("breaks", "category");
  column.reserve(table.rows);
  const read = constraints.map((one) => ({ ...one, values: table.values(one.column) }));
  for (let row = 0; row < table.rows; ++row) {
    const broken = read.filter((one) => brokenBy(one, one.values[row]!) > 0);
    column.values[row] = broken.length === 0 ? NaN
      : column.code(broken.map((one) => one.metric).join(", "));
  }
}
