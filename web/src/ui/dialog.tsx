// Dialogs are the browser's own: they keep the focus, close with Esc and give the focus back.
import type { ComponentChildren } from "preact";
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  wide?: boolean;
}

export function Dialog(props: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (!element.current?.open) element.current?.showModal();
  }, []);
  return (
    <dialog
      ref={element}
      class={props.wide ? "wide" : undefined}
      aria-label={props.title}
      onClose={props.onClose}
      onClick={(event) => event.target === element.current && props.onClose()}
    >
      <div class="dialog-body">
        <header>
          <h2>{props.title}</h2>
          <button class="plain" aria-label="Close" onClick={props.onClose}>
            ✕
          </button>
        </header>
        {props.children}
      </div>
    </dialog>
  );
}

interface Question {
  title: string;
  text: string;
  action: string;
  danger?: boolean;
  answer: (yes: boolean) => void;
}

const question = signal<Question | null>(null);

// Asks before something that cannot be taken back.
export function confirmed(asked: Omit<Question, "answer">): Promise<boolean> {
  return new Promise((resolve) => {
    question.value = {
      ...asked,
      answer: (yes) => {
        question.value = null;
        resolve(yes);
      },
    };
  });
}

export function QuestionDialog() {
  const asked = question.value;
  if (!asked) return null;
  return (
    <Dialog title={asked.title} onClose={() => asked.answer(false)}>
      <p class="pre">{asked.text}</p>
      <footer>
        <button onClick={() => asked.answer(false)}>Cancel</button>
        <button class={asked.danger ? "danger" : "primary"} onClick={() => asked.answer(true)}>
          {asked.action}
        </button>
      </footer>
    </Dialog>
  );
}

// ---- short notes --------------------------------------------------------------------------------

interface Note {
  id: number;
  text: string;
  bad: boolean;
}

const notes = signal<Note[]>([]);
let lastNote = 0;

export function note(text: string, bad = false): void {
  const id = ++lastNote;
  notes.value = [...notes.peek().slice(-4), { id, text, bad }];
  setTimeout(() => dismiss(id), bad ? 12_000 : 4000);
}

export function noteError(error: unknown): void {
  note(error instanceof Error ? error.message : String(error), true);
}

function dismiss(id: number): void {
  notes.value = notes.peek().filter((one) => one.id !== id);
}

export function Notes() {
  return (
    <div class="notes" role="status" aria-live="polite">
      {notes.value.map((one) => (
        <div key={one.id} class={one.bad ? "note bad" : "note"}>
          <span>{one.text}</span>
          <button class="plain" aria-label="Dismiss" onClick={() => dismiss(one.id)}>
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    note("copied");
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    note(done ? "copied" : "this browser does not let the page copy: select the text", !done);
  }
}
