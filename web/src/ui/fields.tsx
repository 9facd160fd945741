// The fields of a form.
export function numberOr(text: string): number | undefined {
  return text.trim() === "" || Number.isNaN(Number(text)) ? undefined : Number(text);
}

export function Field(props: {
  label: string;
  value: string | number | undefined;
  onValue: (text: string) => void;
  type?: "text" | "number";
  width?: string;
  hint?: string | undefined; // what holds where nothing is written
  help?: string | undefined;
}) {
  return (
    <label title={props.help}>
      {props.label}
      <input
        placeholder={props.hint}
        inputMode={props.type === "number" ? "numeric" : "text"}
        value={props.value ?? ""}
        style={{ width: props.width ?? "11rem" }}
        onChange={(event) => props.onValue(event.currentTarget.value)}
      />
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
        value={props.value.join("\n")}
        onChange={(event) =>
          props.onValue(event.currentTarget.value.split("\n").filter((one) => one !== ""))}
      />
    </label>
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
          <input
            aria-label={`Value ${i + 1}`}
            value={value}
            style={{ width: `${Math.min(26, Math.max(6, value.length + 4))}ch` }}
            onChange={(event) => onValues(
              values.map((one, j) => (j === i ? event.currentTarget.value : one)),
            )}
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
