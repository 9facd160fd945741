// The fields of a form.
import { useState } from "preact/hooks";

// What is being typed stays as it is, whatever is drawn again meanwhile, until it is taken.
export function useDraft(value: string, take: (text: string) => void) {
  const [draft, setDraft] = useState<string | null>(null);
  type Typed = { currentTarget: { value: string } };
  return {
    value: draft ?? value,
    onInput: (event: Typed) => setDraft(event.currentTarget.value),
    onChange: (event: Typed) => {
      setDraft(null);
      take(event.currentTarget.value);
    },
    onBlur: () => setDraft(null),
  };
}

// The number that is written, undefined for nothing, and a text that is no number as it is: it
// stays in the field and in the YAML, where the server says what is wrong with it.
export function numberOr(text: string): number | undefined {
  const word = text.trim();
  if (word === "") return undefined;
  return Number.isFinite(Number(word)) ? Number(word) : (word as unknown as number);
}

const KINDS = {
  number: { words: "a number", fits: Number.isFinite },
  integer: { words: "an integer", fits: Number.isInteger },
};

export function Field(props: {
  label: string;
  value: string | number | undefined;
  onValue: (text: string) => void;
  type?: keyof typeof KINDS; // what must be in it, if anything
  width?: string;
  hint?: string | undefined; // what holds where nothing is written
  help?: string | undefined;
}) {
  const value = String(props.value ?? "");
  const kind = props.type && KINDS[props.type];
  const wrong = kind !== undefined && value !== "" && !kind.fits(Number(value));
  return (
    <label title={props.help}>
      {props.label}
      <input
        placeholder={props.hint}
        aria-invalid={wrong}
        inputMode={{ number: "decimal", integer: "numeric", text: "text" }[props.type ?? "text"]}
        style={{ width: props.width ?? "11rem" }}
        {...useDraft(value, props.onValue)}
      />
      {wrong && <small class="problem" role="alert">must be {kind.words}, not "{value}"</small>}
    </label>
  );
}

export function Choice(props: {
  label: string;
  value: string;
  words: readonly string[];
  onValue: (word: string) => void;
}) {
  const words = props.words.includes(props.value) ? props.words : [props.value, ...props.words];
  return (
    <label>
      {props.label}
      <select value={props.value} onChange={(event) => props.onValue(event.currentTarget.value)}>
        {words.map((word) => (
          <option key={word}>{word}</option>
        ))}
      </select>
    </label>
  );
}

// A list of words, one to a line.
export function Lines(props: {
  label: string;
  value: readonly string[];
  onValue: (lines: string[]) => void;
}) {
  return (
    <label class="lines">
      {props.label}
      <textarea
        rows={Math.min(14, props.value.length + 1)}
        spellcheck={false}
        {...useDraft(props.value.join("\n"), (text) =>
          props.onValue(text.split("\n").filter((one) => one !== "")))}
      />
    </label>
  );
}

function Value(props: { label: string; value: string; onValue: (text: string) => void }) {
  return (
    <input
      aria-label={props.label}
      style={{ width: `${Math.min(26, Math.max(6, props.value.length + 4))}ch` }}
      {...useDraft(props.value, props.onValue)}
    />
  );
}

// One input a value, so that a value may hold whatever it likes.
export function Values(props: { values: readonly string[]; onValues: (next: string[]) => void }) {
  const { values, onValues } = props;
  return (
    <span class="values">
      <span aria-hidden="true">Values</span>
      {values.map((value, i) => (
        <span key={i}>
          <Value
            label={`Value ${i + 1}`}
            value={value}
            onValue={(text) => onValues(values.map((one, j) => (j === i ? text : one)))}
          />
          <button
            class="plain"
            aria-label={`Remove value ${i + 1}`}
            onClick={() => onValues(values.filter((_, j) => j !== i))}
          >
            ✕
          </button>
        </span>
      ))}
      <button onClick={() => onValues([...values, nextValue(values)])}>Add value</button>
    </span>
  );
}

// Numbers go on as numbers, words as words; no value is there twice.
function nextValue(values: readonly string[]): string {
  const numbers = values.map(Number);
  if (numbers.every(Number.isFinite)) return String(Math.max(0, ...numbers) + 1);
  let n = values.length + 1;
  while (values.includes(`value-${n}`)) ++n;
  return `value-${n}`;
}
