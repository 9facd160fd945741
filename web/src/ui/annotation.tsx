// The note and the tags of an experiment or a trial: shown, and changed by who may.
import { useEffect, useState } from "preact/hooks";
import type { Key } from "../api/experiments.js";
import { annotate, idOf, rightsIn } from "../api/experiments.js";
import type { Annotated } from "../api/records.js";
import { draftOf, keepDraft } from "../drafts.js";
import { shellWord } from "../format.js";
import { Markdown } from "../markdown.js";
import { namespaceFlag } from "../pages/context.js";
import { note as say, noteError } from "./dialog.js";
import { Empty, Panel } from "./panel.js";

interface Props {
  about: Key;
  trial: number; // 0: of the experiment
  record: Annotated;
  again: () => void;
}

function Tags(props: Props & { may: boolean }) {
  const { about, trial, record, again, may } = props;
  const [text, setText] = useState("");
  const tags = record.tags ?? [];
  const change = (what: { addTags?: string[]; removeTags?: string[] }) =>
    annotate(about, trial, what).then(() => {
      setText("");
      again();
    }, noteError);
  return (
    <div class="tags">
      <ul aria-label="Tags">
        {tags.map((tag) => (
          <li key={tag}>
            {tag}
            {may && (
              <button
                class="plain"
                aria-label={`Remove the tag ${tag}`}
                onClick={() => void change({ removeTags: [tag] })}
              >
                ✕
              </button>
            )}
          </li>
        ))}
      </ul>
      {may && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (text.trim() !== "") void change({ addTags: [text.trim()] });
          }}
        >
          <input
            aria-label="New tag"
            placeholder="new tag"
            maxLength={63}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <button type="submit">Add</button>
        </form>
      )}
    </div>
  );
}

// What is being written, and the note that it began with: another one may come meanwhile.
interface Draft {
  text: string;
  before: string;
}

interface EditorProps extends Props {
  note: string; // as it is now
  draft: Draft;
  onDraft: (draft: Draft | null) => void;
  onWritten: (note: string) => void;
}

function Editor(props: EditorProps) {
  const { about, trial, again, draft, onDraft, onWritten } = props;
  const changed = props.note !== draft.before;
  const write = () =>
    annotate(about, trial, { note: draft.text }).then((reply) => {
      say(reply?.message ?? "written");
      onDraft(null);
      onWritten(draft.text);
      again();
    }, noteError);
  return (
    <div class="note-editor">
      <textarea
        aria-label="Note"
        rows={12}
        value={draft.text}
        onInput={(event) => onDraft({ ...draft, text: event.currentTarget.value })}
      />
      {changed && (
        <p class="problem">
          Another person has written the note meanwhile: yours would take its place.
        </p>
      )}
      <p class="dim">
        # heading, - list, 1. list, **strong**, *emphasis*, `code`, ``` block, [text](#/address of
        this page)
      </p>
      <div class="tools">
        <button class="primary" onClick={() => void write()}>
          {changed ? "Write over it" : "Write"}
        </button>
        <button onClick={() => onDraft(null)}>Cancel</button>
      </div>
      {draft.text.trim() !== "" && (
        <section aria-label="Preview">
          <Markdown text={draft.text} />
        </section>
      )}
    </div>
  );
}

function readDraft(id: string): Draft | null {
  const kept = draftOf(id);
  return kept === null ? null : JSON.parse(kept) as Draft;
}

// Of another trial another one, with a draft of its own.
export function Annotation(props: Props) {
  const id = `note/${idOf(props.about)}/${props.trial}`;
  return <Own key={id} {...props} id={id} />;
}

function Own(props: Props & { id: string }) {
  const { about, trial, record, id } = props;
  const [draft, setState] = useState<Draft | null>(() => readDraft(id));
  const setDraft = (next: Draft | null) => {
    const worth = next !== null && next.text !== next.before;
    keepDraft(id, worth ? JSON.stringify(next) : null);
    setState(next);
  };
  // The owner of the experiment writes it within a second: until then the one before is loaded.
  const [written, setWritten] = useState<string | null>(null);
  useEffect(() => setWritten(null), [record.note]);
  const may = rightsIn(about.ns).change;
  const text = written ?? record.note ?? "";
  const target = trial > 0 ? `${about.name}/${trial}` : about.name;
  return (
    <Panel
      title="Note and tags"
      command={`shirabe note ${target}${namespaceFlag(about)}` +
        (text === "" ? "" : ` ${shellWord(text)}`)}
      table={() => ({
        columns: ["what", "text"],
        rows: [["tags", (record.tags ?? []).join(", ")], ["note", text]],
      })}
    >
      <Tags {...props} may={may} />
      {draft !== null && may ? (
        <Editor {...props} note={text} draft={draft} onDraft={setDraft} onWritten={setWritten} />
      ) : (
        <>
          {text === "" ? <Empty title="No note yet" /> : <Markdown text={text} />}
          {may && (
            <p>
              <button onClick={() => setDraft({ text, before: text })}>
                {text === "" ? "Write a note" : "Edit"}
              </button>
            </p>
          )}
        </>
      )}
    </Panel>
  );
}
