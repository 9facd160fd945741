// The fields of an experiment that most people set. What has no field here stays as it is in the
// YAML.
import { listAlgorithms } from "../api/experiments.js";
import type { Experiment, Parameter } from "../api/records.js";
import { useLoad } from "../load.js";
import { Choice, Field, numberOr } from "../ui/fields.js";
import { Panel } from "../ui/panel.js";
import { Results, changedObjective } from "./create_results.js";

interface FormProps {
  experiment: Experiment;
  onChange: (experiment: Experiment) => void;
}

type Change = (edit: (copy: Experiment) => void) => void;

function Basics(props: { experiment: Experiment; change: Change }) {
  const { experiment, change } = props;
  const algorithms = useLoad("algorithms", listAlgorithms);
  const chosen = experiment.spec.algorithm?.algorithmName ?? "auto";
  const objective = experiment.spec.objective ?? { type: "minimize", objectiveMetricName: "" };
  const help = algorithms.value?.find((one) => one.name === chosen)?.help;
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
        <Choice
          label="Algorithm"
          value={chosen}
          words={["auto", ...(algorithms.value ?? []).map((one) => one.name)
            .filter((name) => name !== "auto")]}
          onValue={(algorithmName) => change((copy) => (copy.spec.algorithm = { algorithmName }))}
        />
        {([
          ["Trials", "maxTrialCount"], ["At the same time", "parallelTrialCount"],
          ["Failures allowed", "maxFailedTrialCount"],
        ] as const).map(([label, name]) => (
          <Field
            key={name}
            label={label}
            type="number"
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
      {help && <p class="dim">{help}</p>}
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
      <Field
        label="Values, separated by commas"
        width="18rem"
        value={(space.list ?? []).join(", ")}
        onValue={(text) => edit({
          ...parameter,
          feasibleSpace: { list: text.split(",").map((one) => one.trim()).filter(Boolean) },
        })}
      />
    );
  }
  return (
    <>
      {(["min", "max", "step"] as const).map((name) => (
        <Field
          key={name}
          label={{ min: "From", max: "To", step: "Step" }[name]}
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
  const add = () => change((copy) => {
    copy.spec.parameters = [...(copy.spec.parameters ?? []), {
      name: `parameter-${parameters.length + 1}`, parameterType: "double",
      feasibleSpace: { min: "0", max: "1" },
    }];
  });
  return (
    <Panel title="Parameters" tools={<button onClick={add}>Add</button>}>
      {parameters.map((parameter, i) => (
        <fieldset class="row" key={i}>
          <legend class="unseen">{parameter.name}</legend>
          <Field
            label="Name"
            width="8rem"
            value={parameter.name}
            onValue={(name) => edit(i, { ...parameter, name })}
          />
          <Choice
            label="Type"
            value={parameter.parameterType}
            words={TYPES}
            onValue={(type) => edit(i, {
              ...parameter,
              parameterType: type as Parameter["parameterType"],
              feasibleSpace: type === "double" || type === "int"
                ? { min: parameter.feasibleSpace?.min ?? "0",
                    max: parameter.feasibleSpace?.max ?? "1" }
                : { list: parameter.feasibleSpace?.list ?? ["1", "2"] },
            })}
          />
          <Space parameter={parameter} edit={(next) => edit(i, next)} />
          <button
            class="plain"
            aria-label={`Remove ${parameter.name}`}
            onClick={() => change((copy) => copy.spec.parameters!.splice(i, 1))}
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
    </>
  );
}
