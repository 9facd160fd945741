// A new experiment: a form and its YAML, each of which follows the other; mistakes as one types;
// the points that would be tried first. YAML is read by the server, so that it means here what it
// means everywhere.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Candidates, Parsed } from "../api/experiments.js";
import { create, idOf, loadRights, parse, rightsIn, suggestFor } from "../api/experiments.js";
import { ApiError, session } from "../api/http.js";
import type { Experiment, Finding } from "../api/records.js";
import { listKeys } from "../api/summaries.js";
import { useLoad } from "../load.js";
import { CandidateList } from "../ui/candidates.js";
import { note, noteError } from "../ui/dialog.js";
import { Command, Panel, save } from "../ui/panel.js";
import { Icon } from "../ui/state.js";
import { go, link, param, setParams } from "../url.js";
import { specificationOf } from "../yaml.js";
import { edited } from "../yaml_edit.js";
import { EXAMPLES } from "./examples.js";
import { withUnread } from "./create_changes.js";
import { ExperimentForm } from "./create_form.js";
import { useText } from "./create_text.js";

interface Reading {
  of: string; // the text that was read; a moment after a change it is the one before
  parsed: Parsed | null;
  problem: string;
}

// What the server makes of the text, a moment after it was last changed.
function useParsed(text: string): Reading {
  const [state, setState] = useState<Reading>({ of: "", parsed: null, problem: "" });
  const epoch = session.value;
  useEffect(() => {
    if (text.trim() === "") return setState({ of: text, parsed: null, problem: "" });
    let current = true;
    const timer = setTimeout(() => {
      parse(text).then(
        (parsed) => {
          withUnread(parsed.experiment, parsed.findings);
          if (current) setState({ of: text, parsed, problem: "" });
        },
        (error: Error) => current && setState((old) => ({ ...old, problem: error.message })),
      );
    }, 250);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [text, epoch]);
  return state;
}

function select(area: HTMLTextAreaElement, finding: Finding): void {
  const lines = area.value.split("\n");
  const line = Math.min((finding.line ?? 1) - 1, lines.length - 1);
  const begin = lines.slice(0, line).reduce((sum, one) => sum + one.length + 1, 0);
  area.focus();
  area.setSelectionRange(begin + (finding.column ?? 1) - 1, begin + lines[line]!.length);
  area.scrollTop = Math.max(0, (line - 6) * 20);
}

function Findings(props: { findings: Finding[]; show: (finding: Finding) => void }) {
  if (props.findings.length === 0) return null;
  return (
    <ul class="findings" aria-label="What the server says of it">
      {props.findings.map((one, i) => (
        <li key={i}>
          <button class="plain" onClick={() => props.show(one)}>
            <span class={`state ${one.level === "error" ? "bad" : "pause"}`}>
              <Icon shape={one.level === "error" ? "cross" : "bolt"} />
              <span class="unseen">{one.level}</span>
            </span>
            {one.line ? `line ${one.line}: ` : ""}
            {one.field !== "" && <b>{one.field}</b>} {one.message}
          </button>
        </li>
      ))}
    </ul>
  );
}

function Gutter(props: { lines: number; findings: Finding[]; scroll: number }) {
  const bad = new Map(props.findings.map((one) => [one.line ?? 0, one.level]));
  return (
    <div class="gutter" aria-hidden="true">
      <div style={{ transform: `translateY(${-props.scroll}px)` }}>
        {Array.from({ length: props.lines }, (_, i) => (
          <div key={i} class={bad.get(i + 1)}>
            {i + 1}
          </div>
        ))}
      </div>
    </div>
  );
}

interface EditorProps {
  text: string;
  findings: Finding[];
  valid: boolean;
  onText: (text: string) => void;
}

function Editor(props: EditorProps) {
  const area = useRef<HTMLTextAreaElement>(null);
  const [scroll, setScroll] = useState(0);
  return (
    <>
      <div class="editor-box">
        <Gutter lines={props.text.split("\n").length} findings={props.findings} scroll={scroll} />
        <textarea
          ref={area}
          class="editor"
          aria-label="YAML"
          aria-invalid={!props.valid}
          spellcheck={false}
          value={props.text}
          onInput={(event) => props.onText(event.currentTarget.value)}
          onScroll={(event) => setScroll(event.currentTarget.scrollTop)}
        />
      </div>
      <Findings
        findings={props.findings}
        show={(one) => area.current && select(area.current, one)}
      />
    </>
  );
}

function Sources(props: { onText: (text: string) => void }) {
  const all = useLoad("experiments", listKeys);
  const file = useRef<HTMLInputElement>(null);
  const open = async (chosen: File | undefined) => {
    if (!chosen) return;
    if (chosen.size > 1 << 20) return note(`${chosen.name} has more than 1 MiB`, true);
    props.onText(await chosen.text());
  };
  return (
    <div class="tools">
      <label>
        Begin with
        <select
          value={param("from")}
          onChange={(event) => setParams({ from: event.currentTarget.value })}
        >
          <option value="">an example</option>
          {EXAMPLES.map((one) => (
            <option key={one.name} value={one.name}>
              {one.name}
            </option>
          ))}
          {(all.value ?? []).map((one) => (
            <option key={idOf(one)}>{idOf(one)}</option>
          ))}
        </select>
      </label>
      <button onClick={() => file.current?.click()}>Open a file</button>
      <input
        ref={file}
        type="file"
        accept=".yaml,.yml,.json"
        class="unseen"
        tabIndex={-1}
        aria-label="A file with an experiment"
        onChange={(event) => void open(event.currentTarget.files?.[0])}
      />
    </div>
  );
}

function First(props: { text: string; valid: boolean }) {
  const [shown, setShown] = useState<{ text: string; candidates: Candidates } | null>(null);
  const [asking, setAsking] = useState(false);
  const ask = async () => {
    setAsking(true);
    try {
      setShown({ text: props.text, candidates: await suggestFor(props.text, 5) });
    } catch (error) {
      noteError(error);
    }
    setAsking(false);
  };
  return (
    <Panel
      title="What would be tried first"
      tools={
        <button disabled={!props.valid || asking} onClick={() => void ask()}>
          Show 5 suggestions
        </button>
      }
      command="shirabe suggest -f experiment.yaml --count 5"
    >
      {shown === null ? (
        <p class="dim">Nothing is stored or started by asking.</p>
      ) : (
        <>
          {shown.text !== props.text && <p class="hint">of the text as it was when you asked</p>}
          <CandidateList candidates={shown.candidates} />
        </>
      )}
    </Panel>
  );
}

// A text that the form could not change in place, and what it was.
function Rewritten(props: { onUndo: () => void }) {
  return (
    <p class="hint" role="status">
      The form could not change this text in place: it was written from scratch, without its
      comments and in another order.{" "}
      <button onClick={props.onUndo}>Undo</button>
    </p>
  );
}

export default function Create() {
  const { text, changed, setText, beginAgain, forget } = useText();
  const { of, parsed, problem } = useParsed(text);
  // What the form has made, until the server has read it: the next field changes that.
  const [formed, setFormed] = useState<{ text: string; experiment: Experiment } | null>(null);
  const shown = formed?.text === text && of !== text ? formed.experiment : parsed?.experiment;
  const [refused, setRefused] = useState<Finding[]>([]);
  const own = parsed?.experiment?.metadata?.namespace ?? "";
  useEffect(() => void loadRights(own).catch(() => undefined), [own, session.value]);
  useEffect(() => void (document.title = "New experiment · Shirabe"), []);
  const [rewritten, setRewritten] = useState<{ from: string; to: string } | null>(null);
  const change = (next: string) => {
    setRefused([]);
    setText(next);
  };
  const changeBy = (experiment: Experiment) => {
    const inPlace = edited(text, shown, experiment);
    const next = inPlace ?? specificationOf(experiment);
    setFormed({ text: next, experiment });
    if (inPlace === null) setRewritten({ from: text, to: next });
    change(next);
  };
  const target = own === "" ? "default" : own;
  const may = rightsIn(target).create;
  const submit = async () => {
    try {
      const made = await create(text);
      forget();
      note(`${made.metadata.name} was created`);
      go(link(["e", made.metadata.namespace, made.metadata.name]));
    } catch (error) {
      noteError(error);
      if (!(error instanceof ApiError)) return;
      setRefused(error.details.map((one) => ({
        level: "error" as const, field: one.field, message: one.reason,
        ...(one.line === undefined ? {} : { line: one.line }),
      })));
    }
  };
  const findings = [...(parsed?.findings ?? []), ...refused];
  const valid = parsed?.valid ?? false;
  return (
    <main id="main" class="page">
      <div class="page-head">
        <h1>New experiment</h1>
        <Sources onText={change} />
        <div class="tools">
          {changed && (
            <button onClick={beginAgain} title="Without what you have changed">Begin again</button>
          )}
          <button onClick={() => save("experiment.yaml", text, "application/yaml")}>
            Download
          </button>
          {may ? (
            <button class="primary" disabled={!valid} onClick={() => void submit()}>
              Create
            </button>
          ) : (
            <span class="dim">You may not create experiments in the namespace {target}.</span>
          )}
        </div>
      </div>
      {problem !== "" && <p class="problem">{problem}</p>}
      <div class="split">
        <div class="form">
          {shown && <ExperimentForm experiment={shown} onChange={changeBy} />}
          <First text={text} valid={valid} />
        </div>
        <Panel
          title="YAML"
          shown={parsed === null ? "" : valid ? "valid" : `${findings.length} to mend`}
        >
          {rewritten?.to === text && <Rewritten onUndo={() => change(rewritten.from)} />}
          <Editor
            text={text}
            findings={findings}
            valid={valid || parsed === null}
            onText={change}
          />
          <p class="dim">The same from a shell:</p>
          <Command text="shirabe apply -f experiment.yaml" />
        </Panel>
      </div>
    </main>
  );
}
