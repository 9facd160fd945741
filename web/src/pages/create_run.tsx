// The fields of a new experiment that say how points are found, when trials are stopped, what it
// may cost, and what runs.
import { useState } from "preact/hooks";
import type { Variant } from "../api/experiments.js";
import { listAlgorithms, listStoppers } from "../api/experiments.js";
import type { Experiment } from "../api/records.js";
import { useLoad } from "../load.js";
import { Choice, Field, Lines, numberOr } from "../ui/fields.js";
import { Panel } from "../ui/panel.js";
import type { Settings } from "./create_changes.js";
import { containerOf, keptSettings, templateOf, withSetting } from "./create_changes.js";

type Change = (edit: (copy: Experiment) => void) => void;

interface PartProps {
  experiment: Experiment;
  change: Change;
}

function find(variants: Variant[] | undefined, name: string): Variant | undefined {
  return variants?.find((one) => one.name === name || one.aliases?.includes(name));
}

// Those that it knows, and those that are written though it does not.
function SettingFields(props: {
  of: string;
  variant: Variant | undefined;
  settings: Settings;
  onSettings: (next: Settings) => void;
}) {
  const { variant, settings, onSettings } = props;
  const known = variant?.settings ?? [];
  const others = settings.filter((one) => !known.some((other) => other.name === one.name))
    .map(({ name }) => ({ name, help: `${props.of} has no such setting`, default: "" }));
  const all = [...known, ...others];
  if (all.length === 0) return null;
  return (
    <details open={settings.length > 0}>
      <summary>Settings of {props.of}</summary>
      <div class="row">
        {all.map((one) => (
          <Field
            key={one.name}
            label={one.name}
            width="7rem"
            value={settings.find((other) => other.name === one.name)?.value}
            hint={one.default}
            help={one.help}
            onValue={(text) => onSettings(withSetting(settings, one.name, text))}
          />
        ))}
      </div>
    </details>
  );
}

// An algorithm or a rule with its settings. What the next one does not know is left out, and said.
function Chosen(props: {
  label: string;
  none?: string;
  name: string;
  settings: Settings;
  variants: Variant[] | undefined;
  onChosen: (name: string, settings: Settings) => void;
}) {
  const { variants, name, settings, onChosen } = props;
  const [dropped, setDropped] = useState("");
  const variant = find(variants, name);
  const words = (variants ?? []).map((one) => one.name);
  const choose = (next: string) => {
    const kept = next === props.none ? [] : keptSettings(settings, find(variants, next));
    const gone = settings.filter((one) => !kept.includes(one))
      .map((one) => `${one.name}: ${one.value}`).join(", ");
    setDropped(gone === "" || next === props.none ? ""
      : `${next} does not have these settings of ${name}, which were left out: ${gone}.`);
    onChosen(next, kept);
  };
  return (
    <>
      <div class="row">
        <Choice
          label={props.label}
          value={name}
          words={props.none === undefined ? words : [props.none, ...words]}
          onValue={choose}
        />
      </div>
      {dropped !== "" && <p class="hint" role="status">{dropped}</p>}
      {variant && <p class="dim">{variant.help}</p>}
      {name !== props.none && (
        <SettingFields
          of={name}
          variant={variant}
          settings={settings}
          onSettings={(next) => onChosen(name, next)}
        />
      )}
    </>
  );
}

function chosenOf(algorithmName: string, settings: Settings) {
  return { algorithmName, ...(settings.length > 0 ? { algorithmSettings: settings } : {}) };
}

export function Search({ experiment, change }: PartProps) {
  const algorithms = useLoad("algorithms", listAlgorithms);
  const stoppers = useLoad("stoppers", listStoppers);
  const { algorithm, earlyStopping, shirabe } = experiment.spec;
  return (
    <Panel title="Algorithm, early stopping, budget">
      <Chosen
        label="Algorithm"
        name={algorithm?.algorithmName ?? "auto"}
        settings={algorithm?.algorithmSettings ?? []}
        variants={algorithms.value}
        onChosen={(name, settings) =>
          change((copy) => (copy.spec.algorithm = chosenOf(name, settings)))}
      />
      <Chosen
        label="Stop trials early"
        none="never"
        name={earlyStopping?.algorithmName ?? "never"}
        settings={earlyStopping?.algorithmSettings ?? []}
        variants={stoppers.value}
        onChosen={(name, settings) => change((copy) => {
          if (name === "never") delete copy.spec.earlyStopping;
          else copy.spec.earlyStopping = chosenOf(name, settings);
        })}
      />
      <div class="row">
        <Field
          label="Budget, if any"
          type="number"
          width="7rem"
          value={shirabe?.budget?.maxCost}
          onValue={(text) => change((copy) => {
            const maxCost = numberOr(text);
            const rest = { ...copy.spec.shirabe };
            const { maxCost: _, ...budget } = rest.budget ?? {};
            if (maxCost !== undefined) rest.budget = { ...budget, maxCost };
            else delete rest.budget;
            if (Object.keys(rest).length > 0) copy.spec.shirabe = rest;
            else delete copy.spec.shirabe;
          })}
        />
        {shirabe?.budget && (
          <Field
            label="Currency"
            width="5rem"
            value={shirabe.budget.currency}
            hint="USD"
            onValue={(text) => change((copy) => {
              const { currency: _, ...budget } = copy.spec.shirabe!.budget!;
              const word = text.trim();
              copy.spec.shirabe!.budget = word === "" ? budget : { ...budget, currency: word };
            })}
          />
        )}
      </div>
    </Panel>
  );
}

const WORDS = ["command", "args"] as const;

export function Program({ experiment, change }: PartProps) {
  const { spec } = experiment;
  const container = containerOf(spec);
  if (!templateOf(spec)) {
    return (
      <Panel title="What runs">
        <p class="dim">
          {spec.shirabe?.askAndTell
            ? "Nothing: a program asks for trials and tells their results."
            : "There is no trialTemplate yet: write it in the YAML."}
        </p>
      </Panel>
    );
  }
  if (!container) {
    return (
      <Panel title="What runs">
        <p class="dim">The template has no container that this form knows: see the YAML.</p>
      </Panel>
    );
  }
  return (
    <Panel title="What runs">
      <div class="row">
        <Field
          label="Image"
          width="18rem"
          value={container.image}
          onValue={(text) => change((copy) => {
            const own = containerOf(copy.spec)!;
            if (text.trim() === "") delete own.image;
            else own.image = text.trim();
          })}
        />
      </div>
      {WORDS.map((name) => container[name]?.some((word) => /^$|\n/.test(word)) ? (
        <p key={name} class="dim">
          A word of its {name} has several lines, or is empty: change it in the YAML.
        </p>
      ) : (name === "command" || container.args) && (
        <Lines
          key={name}
          label={name === "command" ? "Command, one word to a line" : "Its arguments"}
          value={container[name] ?? []}
          onValue={(lines) => change((copy) => {
            const own = containerOf(copy.spec)!;
            if (lines.length === 0) delete own[name];
            else own[name] = lines;
          })}
        />
      ))}
      <p class="dim">
        <code>{"${trialParameters.NAME}"}</code> stands for the value of a parameter.
      </p>
    </Panel>
  );
}
