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
}) {
  return (
    <label>
      {props.label}
      <input
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
