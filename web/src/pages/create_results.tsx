// What is optimised beside the first objective, and what results must keep.
import type { AdditionalObjective, Experiment, ResultConstraint } from "../api/records.js";
import { Choice, Field, numberOr } from "../ui/fields.js";
import { Panel } from "../ui/panel.js";

type Spec = Experiment["spec"];
type Change = (edit: (copy: Experiment) => void) => void;
type One = AdditionalObjective | ResultConstraint;

function resultsOf(spec: Spec): One[] {
  return [...(spec.shirabe?.additionalObjectives ?? []), ...(spec.shirabe?.constraints ?? [])];
}

// The server lists the metrics of these among those to collect, with what counts of their values:
// of one that is no longer named, neither is to stay.
function forget(spec: Spec, metric: string): void {
  const { objective } = spec;
  if (!objective || resultsOf(spec).some((one) => one.metricName === metric)) return;
  if (objective.additionalMetricNames) {
    objective.additionalMetricNames =
      objective.additionalMetricNames.filter((name) => name !== metric);
    if (objective.additionalMetricNames.length === 0) delete objective.additionalMetricNames;
  }
  if (!objective.metricStrategies || metric === objective.objectiveMetricName) return;
  objective.metricStrategies = objective.metricStrategies.filter((one) => one.name !== metric);
  if (objective.metricStrategies.length === 0) delete objective.metricStrategies;
}

// The first objective with other fields, and without the strategies that follow from them: the
// server sets those. The ones of further objectives and constraints do not follow from it.
export function changedObjective(
  spec: Spec, fields: Partial<Spec["objective"]>,
): Spec["objective"] {
  const { metricStrategies = [], ...rest } = spec.objective ?? {};
  const further = resultsOf(spec).map((one) => one.metricName);
  const kept = metricStrategies.filter((one) =>
    further.includes(one.name) && one.name !== rest.objectiveMetricName);
  const objective: Spec["objective"] = {
    ...rest, type: rest.type ?? "minimize", objectiveMetricName: rest.objectiveMetricName ?? "",
    ...fields,
  };
  return kept.length > 0 ? { ...objective, metricStrategies: kept } : objective;
}

const LISTS = ["additionalObjectives", "constraints"] as const;
type List = (typeof LISTS)[number];

function setList(spec: Spec, list: List, next: One[]): void {
  const before = spec.shirabe?.[list] ?? [];
  spec.shirabe = { ...spec.shirabe, [list]: next };
  if (next.length === 0) {
    delete spec.shirabe[list];
    if (list === "additionalObjectives") delete spec.shirabe.objectiveReference;
  }
  for (const one of before) forget(spec, one.metricName);
}

function without<T extends object>(record: T, field: keyof T): T {
  const copy = { ...record };
  delete copy[field];
  return copy;
}

function withNumber<T extends object>(record: T, field: keyof T, text: string): T {
  const value = numberOr(text);
  return value === undefined ? without(record, field) : { ...record, [field]: value };
}

interface RowProps<T> {
  one: T;
  edit: (next: T) => void;
  remove: () => void;
}

function Remove(props: { what: string; onRemove: () => void }) {
  return (
    <button class="plain" aria-label={`Remove ${props.what}`} onClick={props.onRemove}>
      ✕
    </button>
  );
}

function Numbers<T extends object>(props: {
  one: T; edit: (next: T) => void; fields: [keyof T & string, string][];
}) {
  return (
    <>
      {props.fields.map(([name, label]) => (
        <Field
          key={name}
          label={label}
          type="number"
          width="5.5rem"
          value={props.one[name] as number | undefined}
          onValue={(text) => props.edit(withNumber(props.one, name, text))}
        />
      ))}
    </>
  );
}

function ObjectiveRow({ one, edit, remove }: RowProps<AdditionalObjective>) {
  return (
    <fieldset class="row">
      <legend class="unseen">Objective {one.metricName}</legend>
      <Choice
        label="Also"
        value={one.type}
        words={["minimize", "maximize"]}
        onValue={(type) => edit({ ...one, type: type as "minimize" })}
      />
      <Field
        label="Metric"
        width="8rem"
        value={one.metricName}
        onValue={(metricName) => edit({ ...one, metricName })}
      />
      <Numbers
        one={one}
        edit={edit}
        fields={[["goal", "Goal, if any"], ["reference", "Reference, if any"]]}
      />
      <Remove what={`the objective ${one.metricName}`} onRemove={remove} />
    </fieldset>
  );
}

function ConstraintRow({ one, edit, remove }: RowProps<ResultConstraint>) {
  return (
    <fieldset class="row">
      <legend class="unseen">Constraint on {one.metricName}</legend>
      <Field
        label="Keep the metric"
        width="8rem"
        value={one.metricName}
        onValue={(metricName) => edit({ ...one, metricName })}
      />
      <Numbers one={one} edit={edit} fields={[["min", "at least"], ["max", "at most"]]} />
      <Remove what={`the constraint on ${one.metricName}`} onRemove={remove} />
    </fieldset>
  );
}

export function Results(props: { experiment: Experiment; change: Change }) {
  const { experiment, change } = props;
  const objectives = experiment.spec.shirabe?.additionalObjectives ?? [];
  const constraints = experiment.spec.shirabe?.constraints ?? [];
  const fresh = `metric-${objectives.length + constraints.length + 2}`;
  const set = (list: List, next: One[]) => change((copy) => setList(copy.spec, list, next));
  const rowOf = <T extends One>(list: List, all: T[], at: number): RowProps<T> => ({
    one: all[at]!,
    edit: (next) => set(list, all.map((one, i) => (i === at ? next : one))),
    remove: () => set(list, all.filter((_, i) => i !== at)),
  });
  return (
    <Panel
      title="Further objectives and constraints"
      tools={
        <>
          <button
            onClick={() => set("additionalObjectives",
              [...objectives, { metricName: fresh, type: "minimize" }])}
          >
            Add an objective
          </button>
          <button
            onClick={() => set("constraints", [...constraints, { metricName: fresh, max: 1 }])}
          >
            Add a constraint
          </button>
        </>
      }
    >
      {objectives.map((_, i) => (
        <ObjectiveRow key={i} {...rowOf("additionalObjectives", objectives, i)} />
      ))}
      {objectives.length > 0 && (
        <div class="row">
          <Field
            label={`Reference of ${experiment.spec.objective?.objectiveMetricName ?? "the first"}`}
            type="number"
            width="5.5rem"
            value={experiment.spec.shirabe?.objectiveReference}
            onValue={(text) => change((copy) => {
              copy.spec.shirabe = withNumber(copy.spec.shirabe ?? {}, "objectiveReference", text);
            })}
          />
          <small>The hypervolume of the front is measured from the references.</small>
        </div>
      )}
      {constraints.map((_, i) => (
        <ConstraintRow key={i} {...rowOf("constraints", constraints, i)} />
      ))}
      {objectives.length + constraints.length === 0 && (
        <p class="dim">One objective, and every result will do.</p>
      )}
    </Panel>
  );
}
