// One experiment: its head, and the tabs, each of which is loaded when it is opened.
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import type { Key } from "../api/experiments.js";
import { getExperiment, idOf, keyOf, loadRights, rightsIn } from "../api/experiments.js";
import type { Experiment } from "../api/records.js";
import { trialsOf } from "../api/trials.js";
import { session } from "../api/http.js";
import { age, plural } from "../format.js";
import { useKeys } from "../keys.js";
import type { Part } from "../load.js";
import { useChanges, useLoad, useNow, usePart } from "../load.js";
import { hasFront } from "../objectives.js";
import { algorithmOf, endOf, isEnded, reasonOf, stateOf } from "../state.js";
import { State } from "../ui/state.js";
import { go, link, place } from "../url.js";
import { SharedContext, selectedTrials, useChosen } from "./context.js";
import { doAll } from "./experiments.js";

interface TabModule {
  default: ComponentType;
}

const TABS: [string, string, () => Promise<TabModule>][] = [
  ["", "Overview", () => import("../tabs/overview.js")],
  ["trials", "Trials", () => import("../tabs/trials.js")],
  ["pareto", "Pareto", () => import("../tabs/pareto.js")],
  ["analysis", "Analysis", () => import("../tabs/analysis.js")],
  ["curves", "Curves", () => import("../tabs/curves.js")],
  ["timeline", "Timeline", () => import("../tabs/timeline.js")],
  ["events", "Events", () => import("../tabs/events.js")],
  ["notes", "Notes", () => import("../tabs/notes.js")],
  ["specification", "Specification", () => import("../tabs/specification.js")],
];

// Parameters of the address that hold on all tabs.
const KEPT = ["filter", "brush", "sel"];

function kept(): Record<string, string[]> {
  return Object.fromEntries(KEPT.map((name) => [name, place.value.params.getAll(name)]));
}

function Tab(props: { name: string; loaded: Part<TabModule> | undefined }) {
  const { loaded } = props;
  if (!TABS.some(([id]) => id === props.name)) return <p>There is no such tab.</p>;
  if (loaded === undefined) return <div aria-busy="true" />;
  if (loaded.value === null) {
    return (
      <p class="problem">
        This part of the page could not be loaded.{" "}
        <button onClick={() => location.reload()}>Load the page again</button>
      </p>
    );
  }
  const Shown = loaded.value.default;
  return <Shown />;
}

export function Buttons(props: { experiment: Experiment; again: () => void }) {
  const { experiment } = props;
  const rights = rightsIn(experiment.metadata.namespace);
  const state = stateOf(experiment);
  const run = (action: "pause" | "resume" | "stop" | "delete") =>
    void doAll(action, [keyOf(experiment)]).then(() => {
      if (action !== "delete") return props.again();
      getExperiment(keyOf(experiment)).catch(() => go(link([])));
    });
  const live = rights.change && !isEnded(experiment) && state !== "Stopping";
  return (
    <div class="tools">
      {live && state !== "Paused" && <button onClick={() => run("pause")}>Pause</button>}
      {live && state === "Paused" && (
        <button class="primary" onClick={() => run("resume")}>
          Resume
        </button>
      )}
      {live && <button onClick={() => run("stop")}>Stop</button>}
      {rights.create && (
        <a
          class="button"
          href={link(["new"], { from: idOf(keyOf(experiment)) })}
        >
          New from this
        </a>
      )}
      {rights.delete && (
        <button class="danger" onClick={() => run("delete")}>
          Delete
        </button>
      )}
    </div>
  );
}

function Head(props: { experiment: Experiment; again: () => void }) {
  const { experiment } = props;
  const now = useNow(1000);
  const why = reasonOf(experiment);
  const state = stateOf(experiment);
  return (
    <>
      <nav class="crumbs" aria-label="Where">
        <a href={link([])}>Experiments</a>
        <span aria-hidden="true">/</span>
        <span>{experiment.metadata.namespace}</span>
      </nav>
      <div class="page-head">
        <h1>{experiment.metadata.name}</h1>
        <State state={state} />
        <span class="shown">
          {algorithmOf(experiment)} · {age(experiment.metadata.creationTimestamp, now)} old
          {experiment.status?.shirabe?.preemptions
            ? ` · ${plural(experiment.status.shirabe.preemptions, "preemption")}`
            : ""}
        </span>
        <Buttons experiment={experiment} again={props.again} />
      </div>
      {["Failed", "Paused", "Stopping"].includes(state) ||
      experiment.status?.shirabe?.waiting ? (
        <p class={`banner ${state === "Failed" ? "bad" : ""}`} role="status">
          <strong>{state === "Failed" ? "Why it failed" : "Why it waits"}</strong>
          <span>{why}</span>
        </p>
      ) : null}
      {endOf(experiment) !== "" && (
        <p class="banner" role="status">
          <strong>Why it ended</strong>
          <span>{endOf(experiment)}</span>
        </p>
      )}
    </>
  );
}

function Tabs(props: { ns: string; name: string; tab: string; several: boolean }) {
  return (
    <nav class="tabs" aria-label="Views of this experiment">
      {TABS.filter(([id]) => id !== "pareto" || props.several).map(([id, name]) => (
        <a
          key={id}
          href={link(["e", props.ns, props.name, ...(id === "" ? [] : [id])], kept())}
          aria-current={id === props.tab ? "page" : undefined}
        >
          {name}
        </a>
      ))}
    </nav>
  );
}

function useData(key: Key, experiment: Experiment | undefined, watch: number) {
  const store = trialsOf(key);
  const there = experiment !== undefined;
  useEffect(() => {
    if (experiment && watch > 0) store.load(experiment).catch(() => undefined);
    return () => store.close();
  }, [store, there, watch]);
  return store;
}

export default function ExperimentPage() {
  const [, ns = "", name = "", tab = ""] = place.value.path;
  const key = { ns, name };
  const loadedTab = usePart(tab, TABS.find(([id]) => id === tab)?.[2]);
  // Once a second: fifty open pages then take some 3 % of a core of the server (bench/web).
  const watch = useChanges(key, () => {
    loaded.again();
    if (loaded.value) store.refresh(loaded.value).catch(() => undefined);
  }, 1000);
  const loaded = useLoad(idOf(key), (abort) => getExperiment(key, abort), watch);
  const store = useData(key, loaded.value, watch);
  useEffect(() => void loadRights(ns).catch(() => undefined), [ns, session.value]);
  useEffect(() => void (document.title = `${name} · Shirabe`), [name]);
  useKeys([{ key: "/", help: "filter the trials", act: () => focusFilter(key) }]);
  const data = store.data.value;
  const { rows, problem } = useChosen(data);
  if (loaded.value === undefined) {
    return (
      <main id="main" class="page" aria-busy={!loaded.error}>
        <h1>{name}</h1>
        {loaded.error && <p class="problem">{loaded.error.message}</p>}
      </main>
    );
  }
  const shared = {
    key, experiment: loaded.value, data, rows, problem,
    selected: selectedTrials(), again: loaded.again,
  };
  return (
    <main id="main" class={`page ${tab === "trials" ? "fill" : ""}`}>
      {loaded.error && <p class="problem">{loaded.error.message}</p>}
      <Head experiment={loaded.value} again={loaded.again} />
      <Tabs ns={ns} name={name} tab={tab} several={hasFront(loaded.value)} />
      <SharedContext.Provider value={shared}>
        <Tab name={tab} loaded={loadedTab} />
      </SharedContext.Provider>
    </main>
  );
}

function focusFilter(key: Key): void {
  const field = document.querySelector<HTMLInputElement>("input[type=search]");
  if (field) field.focus();
  else go(link(["e", key.ns, key.name, "trials"], kept()));
}

