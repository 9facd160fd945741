// The text of a new experiment: what it begins with, and what the user has made of it.
import { useEffect, useState } from "preact/hooks";
import { getExperiment, homeNamespace, keyFromId } from "../api/experiments.js";
import { session } from "../api/http.js";
import { draftOf, keepDraft } from "../drafts.js";
import { noteError } from "../ui/dialog.js";
import { param } from "../url.js";
import { specificationOf } from "../yaml.js";
import { EXAMPLES } from "./examples.js";

// digits → digits-2, digits-2 → digits-3
export function nextName(name: string): string {
  const match = /^(.*?)-(\d+)$/.exec(name);
  const [stem, number] = match ? [match[1]!, Number(match[2]) + 1] : [name, 2];
  return `${stem.slice(0, 40 - String(number).length - 1)}-${number}`;
}

// An example for a user of this namespace; `default` needs no word.
export function inNamespace(text: string, ns: string): string {
  return ns === "default" ? text : text.replace(/^metadata:\n/m, `$&  namespace: ${ns}\n`);
}

async function textFrom(id: string): Promise<string> {
  const experiment = await getExperiment(keyFromId(id));
  const copied = structuredClone(experiment);
  copied.metadata = {
    name: nextName(experiment.metadata.name), namespace: experiment.metadata.namespace,
  };
  return specificationOf(copied);
}

export interface NewText {
  text: string;
  changed: boolean; // since its beginning
  setText: (text: string) => void;
  beginAgain: () => void;
  forget: () => void; // it has become an experiment
}

export function useText(): NewText {
  const from = param("from");
  const home = homeNamespace.value;
  const [state, setState] = useState({ text: "", changed: false });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const draft = draftOf(from); // one for each beginning: to look at another one loses nothing
    if (draft !== null) return setState({ text: draft, changed: true });
    const example = EXAMPLES.find((one) => one.name === from) ?? (from === "" ? EXAMPLES[0] : null);
    if (example) return setState({ text: inNamespace(example.text, home), changed: false });
    let current = true;
    textFrom(from).then((text) => current && setState({ text, changed: false }), noteError);
    return () => {
      current = false;
    };
  }, [from, round, session.value, home]);
  const forget = () => keepDraft(from, null);
  return {
    ...state,
    setText: (text) => {
      keepDraft(from, text);
      setState({ text, changed: true });
    },
    beginAgain: () => {
      forget();
      setRound((n) => n + 1);
    },
    forget,
  };
}
