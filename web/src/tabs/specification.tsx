// The experiment as it was asked for, as YAML, and what differs in another one.
import { useMemo } from "preact/hooks";
import { getExperiment, idOf, keyFromId, rightsIn } from "../api/experiments.js";
import { listKeys } from "../api/summaries.js";
import { plural } from "../format.js";
import { useLoad } from "../load.js";
import { namespaceFlag, useShared } from "../pages/context.js";
import { copy } from "../ui/dialog.js";
import { Panel, save } from "../ui/panel.js";
import { Yaml } from "../ui/yaml.js";
import { link, param, setParams } from "../url.js";
import { diffLines, specificationOf } from "../yaml.js";

function Diff(props: { before: string; after: string }) {
  const lines = useMemo(() => diffLines(props.before, props.after), [props.before, props.after]);
  const changed = lines.filter((one) => one.kind !== "same").length;
  return (
    <>
      <p class="shown">
        {changed === 0 ? "They are the same." : plural(changed, "line") + " differ"}
      </p>
      <pre class="code" tabIndex={0} role="group" aria-label="Differences">
        {lines.map((line, i) => (
          <div key={i} class={line.kind === "same" ? undefined : `diff-${line.kind}`}>
            {line.kind === "add" ? "+ " : line.kind === "del" ? "- " : "  "}
            {line.text}
          </div>
        ))}
      </pre>
    </>
  );
}

export default function Specification() {
  const { key, experiment } = useShared();
  const text = useMemo(() => specificationOf(experiment), [experiment]);
  const other = param("other");
  const all = useLoad("experiments", listKeys);
  const against = useLoad(other, (abort) => getExperiment(keyFromId(other), abort));
  const names = (all.value ?? []).map(idOf).filter((one) => one !== idOf(key));
  const otherName = other.split("/")[1] ?? "";
  return (
    <Panel
      title="Specification"
      command={other === ""
        ? `shirabe get exp ${key.name}${namespaceFlag(key)} -o yaml`
        : `shirabe compare ${otherName} ${key.name}${namespaceFlag(key)}`}
      tools={
        <>
          <label>
            Beside
            <select
              value={other}
              onChange={(event) => setParams({ other: event.currentTarget.value })}
            >
              <option value="">nothing</option>
              {names.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
          <button onClick={() => void copy(text)}>Copy</button>
          <button onClick={() => save(`${key.name}.yaml`, text, "application/yaml")}>
            Download
          </button>
          {rightsIn(key.ns).create && (
            <a class="button" href={link(["new"], { from: idOf(key) })}>
              New from this
            </a>
          )}
        </>
      }
    >
      {against.error && <p class="problem">{against.error.message}</p>}
      {other !== "" && against.value ? (
        <Diff before={specificationOf(against.value)} after={text} />
      ) : (
        <Yaml text={text} label="Specification" />
      )}
    </Panel>
  );
}
