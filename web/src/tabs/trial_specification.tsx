// What a trial runs: the template of its experiment with its values put in.
import { useMemo } from "preact/hooks";
import { namespaceFlag } from "../pages/context.js";
import type { TrialView } from "../pages/trial.js";
import { rendered } from "../trial_template.js";
import type { TrialTemplate } from "../trial_template.js";
import { copy } from "../ui/dialog.js";
import { Empty, Panel, save } from "../ui/panel.js";
import { Yaml } from "../ui/yaml.js";
import { link } from "../url.js";
import { toYaml } from "../yaml.js";

export default function TrialSpecification(props: { view: TrialView }) {
  const { key, experiment, trial } = props.view;
  const template = experiment.spec.trialTemplate as TrialTemplate | undefined;
  const { name, namespace } = trial.metadata;
  const made = useMemo(() => template?.trialSpec === undefined ? null : rendered(
    template, { name, namespace, assignments: trial.spec.parameterAssignments },
    experiment.spec.parameters ?? [],
  ), [template, trial, experiment]);
  const text = made ? toYaml(made.spec) : "";
  return (
    <Panel
      title="Specification"
      command={`shirabe get exp ${key.name}${namespaceFlag(key)} -o yaml`}
      commandNote="It prints the experiment's template, without the values of this trial."
      tools={made && (
        <>
          <button onClick={() => void copy(text)}>Copy</button>
          <button onClick={() => save(`${name}.yaml`, text, "application/yaml")}>Download</button>
        </>
      )}
    >
      {made ? (
        <>
          <p class="hint">
            The template of{" "}
            <a href={link(["e", key.ns, key.name, "specification"])}>the experiment</a> with the
            values of this trial. An attempt adds its machine and its folder of checkpoints.
            {made.absent.length > 0 &&
              ` Not in this trial, and left out: ${made.absent.join(", ")}.`}
          </p>
          <Yaml text={text} label="Specification" />
        </>
      ) : (
        <Empty title="Shirabe runs nothing for this trial">
          <p>Its experiment has no template: a program asks for trials and tells their results.</p>
        </Empty>
      )}
    </Panel>
  );
}
