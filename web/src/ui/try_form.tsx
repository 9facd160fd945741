// A further trial with values of a person's own: those of this trial, with changes.
import { useState } from "preact/hooks";
import type { Key } from "../api/experiments.js";
import { tryPoint } from "../api/experiments.js";
import type { Assignment, Parameter } from "../api/records.js";
import { shellWord } from "../format.js";
import { namespaceFlag } from "../pages/context.js";
import { Dialog, note as say } from "./dialog.js";
import { Command } from "./panel.js";

interface Props {
  about: Key;
  number: number; // the trial to be like
  parameters: Parameter[];
  assignments: Assignment[];
  onClose: () => void;
}

function rangeOf(parameter: Parameter): string {
  const { min = "", max = "", step, list } = parameter.feasibleSpace;
  if (list) return parameter.parameterType === "discrete" ? list.join(", ") : "";
  return `${min} to ${max}${step ? `, step ${step}` : ""}`;
}

function Value(props: { parameter: Parameter; value: string; onValue: (value: string) => void }) {
  const { parameter, value, onValue } = props;
  const id = `try-${parameter.name}`;
  const list = parameter.feasibleSpace.list ?? [];
  return (
    <div class="row">
      <label for={id}>{parameter.name}</label>
      {parameter.parameterType === "categorical" ? (
        <select id={id} value={value} onChange={(event) => onValue(event.currentTarget.value)}>
          {list.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      ) : (
        <input
          id={id}
          inputMode="decimal"
          value={value}
          onInput={(event) => onValue(event.currentTarget.value)}
        />
      )}
      <small class="dim">{rangeOf(parameter)}</small>
    </div>
  );
}

export function TryForm(props: Props) {
  const { about, number, parameters, assignments, onClose } = props;
  const before = new Map(assignments.map((one) => [one.name, one.value]));
  const [values, setValues] = useState(before);
  const [problem, setProblem] = useState("");
  const changed = [...values].filter(([name, value]) => before.get(name) !== value);
  const send = () =>
    tryPoint(about, Object.fromEntries(changed), number).then((reply) => {
      say(reply?.message ?? "the point will be tried");
      onClose();
    }, (error: Error) => setProblem(error.message));
  return (
    <Dialog title={`Try trial ${number} with changes`} onClose={onClose} wide>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        {parameters.map((parameter) => (
          <Value
            key={parameter.name}
            parameter={parameter}
            value={values.get(parameter.name) ?? ""}
            onValue={(value) => setValues(new Map(values).set(parameter.name, value))}
          />
        ))}
        {problem !== "" && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <div class="tools">
          <button type="submit" class="primary">
            {changed.length === 0 ? "Try it again as it is" : "Try"}
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
      <Command
        text={`shirabe try ${about.name}${namespaceFlag(about)} --like ${number}` +
          changed.map(([name, value]) => ` --param ${shellWord(`${name}=${value}`)}`).join("")}
      />
    </Dialog>
  );
}
