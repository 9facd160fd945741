// YAML to be read, with its keys and values in two colours; it is not parsed.
import { useMemo } from "preact/hooks";

function Line(props: { text: string }) {
  const match = /^(\s*(?:- )?)([\w.-]+)(:)(?: (.*))?$/.exec(props.text);
  if (!match) return <>{props.text}</>;
  return (
    <>
      {match[1]}
      <span class="key">{match[2]}</span>
      {match[3]} <span class="value">{match[4]}</span>
    </>
  );
}

export function Yaml(props: { text: string; label: string }) {
  const lines = useMemo(() => props.text.replace(/\n$/, "").split("\n"), [props.text]);
  return (
    <pre class="code" tabIndex={0} role="group" aria-label={props.label}>
      {lines.map((line, i) => (
        <div key={i}>
          <Line text={line} />
        </div>
      ))}
    </pre>
  );
}
