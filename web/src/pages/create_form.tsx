// The fields of an experiment that most people set. What has no field here stays as it is in the
// YAML.
import type { Experiment, Parameter } from "../api/records.js";
import { Choice, Field, Values, numberOr } from "../ui/fields.js";
import { Panel } from "../ui/panel.js";
import { Program, Search } from "./create_run.js";
import { addParameter, removeParameter, renameParameter, withType } from "./create_changes.js";
import { Results, changedObjective } from "./create_results.js";

interface FormProps {
  experiment: Experiment;
  onChange: (experiment: Experiment) => void;
}

type Change = (edit: (copy: Experiment) => void) => void;

function Basics(props: { experiment: Experiment; change: Change }) {
  const { experiment, change } = props;
  const objective = experiment.spec.objective ?? { type: "minimize", objectiveMetricName: "" };
  return (
    <Panel title="What to tune">
      <div class="row">
        <Field
          label="Name"
          value={experiment.metadata?.name}
          onValue={(name) => change((copy) => (copy.metadata = { ...copy.metadata, name }))}
        />
        <Field
          label="Namespace"
          value={experiment.metadata?.namespace}
          width="9rem"
          onValue={(ns) => change((copy) => (copy.metadata = { ...copy.metadata, namespace: ns }))}
        />
      </div>
      <div class="row">
        <Choice
          label="Objective"
          value={objective.type ?? "minimize"}
          words={["minimize", "maximize"]}
          onValue={(type) => change((copy) => {
            copy.spec.objective = changedObjective(copy.spec, { type: type as "minimize" });
          })}
        />
        <Field
          label="Metric"
          value={objective.objectiveMetricName}
          onValue={(name) => change((copy) => {
            copy.spec.objective = changedObjective(copy.spec, { objectiveMetricName: name });
          })}
        />
        <Field
          label="Goal, if any"
          type="number"
          value={objective.goal}
          width="7rem"
          onValue={(text) => change((copy) => {
            const goal = numberOr(text);
            copy.spec.objective = { ...objective };
            if (goal === undefined) delete copy.spec.objective.goal;
            else copy.spec.objective.goal = goal;
          })}
        />
      </div>
      <div class="row">
        {([
          ["Trials", "maxTrialCount"], ["At the same time", "parallelTrialCount"],
          ["Failures allowed", "maxFailedTrialCount"],
        ] as const).map(([label, name]) => (
          <Field
            key={name}
            label={label}
            type="integer"
            width="7rem"
            value={experiment.spec[name]}
            onValue={(text) => change((copy) => {
              const value = numberOr(text);
              if (value === undefined) delete copy.spec[name];
              else copy.spec[name] = value;
            })}
          />
        ))}
      </div>
    </Panel>
  );
}

const TYPES = ["double", "int", "discrete", "categorical"] as const;
const SPREADS = ["uniform", "logUniform", "normal", "logNormal"] as const;

function Space(props: { parameter: Parameter; edit: (next: Parameter) => void }) {
  const { parameter, edit } = props;
  const space = parameter.feasibleSpace ?? {};
  const set = (name: "min" | "max" | "step", text: string) => {
    const next = { ...space, [name]: text.trim() };
    if (text.trim() === "") delete next[name];
    edit({ ...parameter, feasibleSpace: next });
  };
  if (parameter.parameterType === "discrete" || parameter.parameterType === "categorical") {
    return (
      <Values
        values={space.list ?? []}
        onValues={(list) => edit({ ...parameter, feasibleSpace: { ...space, list } })}
      />
    );
  }
  return (
    <>
      {(["min", "max", "step"] as const).map((name) => (
        <Field
          key={name}
          label={{ min: "From", max: "To", step: "Step" }[name]}
          type="number"
          width="4.8rem"
          value={space[name]}
          onValue={(text) => set(name, text)}
        />
      ))}
      <Choice
        label="Spread"
        value={space.distribution ?? "uniform"}
        words={SPREADS}
        onValue={(distribution) =>
          edit({ ...parameter, feasibleSpace: { ...space, distribution } })}
      />
    </>
  );
}

function Parameters(props: { experiment: Experiment; change: Change }) {
  const { experiment, change } = props;
  const parameters = experiment.spec.parameters ?? [];
  const edit = (i: number, next: Parameter) => change((copy) => (copy.spec.parameters![i] = next));
  const add = () => change((copy) => addParameter(copy.spec));
  return (
    <Panel title="Parameters" tools={<button onClick={add}>Add</button>}>
      {parameters.map((parameter, i) => (
        <fieldset class="row" key={i}>
          <legend class="unseen">{parameter.name}</legend>
          <Field
            label="Name"
            width="8rem"
            value={parameter.name}
            onValue={(name) => change((copy) => renameParameter(copy.spec, i, name))}
          />
          <Choice
            label="Type"
            value={parameter.parameterType}
            words={TYPES}
            onValue={(type) =>
              edit(i, withType(parameter, type as Parameter["parameterType"]))}
          />
          <Space parameter={parameter} edit={(next) => edit(i, next)} />
          <button
            class="plain"
            aria-label={`Remove ${parameter.name}`}
            onClick={() => change((copy) => removeParameter(copy.spec, i))}
          >
            ✕
          </button>
        </fieldset>
      ))}
      {parameters.length === 0 && <p class="dim">There is nothing to tune yet.</p>}
    </Panel>
  );
}

export function ExperimentForm(props: FormProps) {
  const change: Change = (edit) => {
    const copy = structuredClone(props.experiment);
    copy.spec ??= {} as Experiment["spec"];
    edit(copy);
    props.onChange(copy);
  };
  if (!props.experiment.spec) {
    return (
      <Panel title="What to tune">
        <p class="dim">The form appears once the YAML can be read.</p>
      </Panel>
    );
  }
  return (
    <>
      <Basics experiment={props.experiment} change={change} />
      <Results experiment={props.experiment} change={change} />
      <Parameters experiment={props.experiment} change={change} />
      <Search experiment={props.experiment} change={change} />
      <Program experiment={props.experiment} change={change} />
    </>
  );
}
