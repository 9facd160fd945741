// One trial: its point, metrics, log, attempts and checkpoints.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Key } from "../api/experiments.js";
import {
  getExperiment, getTrial, idOf, listAttempts, listCheckpoints, loadRights, retryTrial, rightsIn,
  stopTrial,
} from "../api/experiments.js";
import type { Attempt, Checkpoint, Experiment, Trial } from "../api/records.js";
import { plural } from "../format.js";
import { useKeys } from "../keys.js";
import { useChanges, useLoad, usePart } from "../load.js";
import { bestNumber, isEnded, metricValue, trialState } from "../state.js";
import { confirmed, note, noteError } from "../ui/dialog.js";
import { State } from "../ui/state.js";
import { TryForm } from "../ui/try_form.js";
import { go, link, place } from "../url.js";
import { Attempts, Checkpoints, Overview } from "./trial_parts.js";
import { brokenIn, objectiveWords } from "./trial_results.js";

export interface TrialView {
  key: Key;
  number: number;
  experiment: Experiment;
  trial: Trial;
  best: Trial | null; // where that is another one
  attempts: Attempt[];
  checkpoints: Checkpoint[];
  again: () => void;
}

export type TrialPart = ComponentType<{ view: TrialView }>;

const TABS: [string, string, () => Promise<TrialPart>][] = [
  ["", "Overview", async () => Overview],
  ["metrics", "Metrics", async () => (await import("../tabs/metrics.js")).default],
  ["log", "Log", async () => (await import("../tabs/log.js")).default],
  ["attempts", "Attempts", async () => Attempts],
  ["checkpoints", "Checkpoints", async () => Checkpoints],
  ["specification", "Specification",
    async () => (await import("../tabs/trial_specification.js")).default],
  ["notes", "Notes", async () => (await import("../tabs/trial_notes.js")).default],
];

async function load(
  key: Key, number: number, abort: AbortSignal,
): Promise<Omit<TrialView, "again">> {
  const [experiment, trial, attempts, checkpoints] = await Promise.all([
    getExperiment(key, abort),
    getTrial(key, number, abort),
    listAttempts(key, number, abort),
    listCheckpoints(key, number, abort),
  ]);
  const bestOne = bestNumber(experiment);
  const best = bestOne > 0 && bestOne !== number ? await getTrial(key, bestOne, abort) : null;
  return { key, number, experiment, trial, best, attempts, checkpoints };
}

function Part(props: { name: string; view: TrialView }) {
  const loaded = usePart(props.name, TABS.find(([id]) => id === props.name)?.[2]);
  if (!TABS.some(([id]) => id === props.name)) return <p>There is no such tab.</p>;
  if (loaded === undefined) return <div aria-busy="true" />;
  if (loaded.value === null) {
    return <p class="problem">This part could not be loaded: load the page again.</p>;
  }
  const Shown = loaded.value;
  return <Shown view={props.view} />;
}

function Head(props: { view: TrialView }) {
  const { key, number, experiment, trial, again } = props.view;
  const state = trialState(trial);
  const ended = !["Pending", "Running", "Created"].includes(state);
  const rights = rightsIn(key.ns);
  const metric = experiment.spec.objective.objectiveMetricName;
  const value = metricValue(experiment, trial.status.observation?.metrics ?? [], metric);
  const broken = brokenIn(trial.status.shirabe);
  const most = experiment.status?.trials ?? number;
  const to = (other: number) => link(["t", key.ns, key.name, other, ...place.value.path.slice(4)]);
  const retry = () =>
    retryTrial(key, number).then((reply) => {
      note(reply?.message ?? "the same point will be tried again");
      again();
    }, noteError);
  const [trying, setTrying] = useState(false);
  // Of an experiment that has ended nothing is tried any more.
  const more = rights.change && !isEnded(experiment);
  const stop = async () => {
    const text = "It may save, then it ends. Its best value so far counts; the experiment goes on.";
    const title = `Stop trial ${number}?`;
    if (!(await confirmed({ title, text, action: "Stop this trial", danger: true }))) return;
    await stopTrial(key, number).then((reply) => {
      note(reply?.message ?? "it will end");
      again();
    }, noteError);
  };
  useKeys(
    [
      { key: "]", help: "next trial", act: () => number < most && go(to(number + 1)) },
      { key: "[", help: "previous trial", act: () => number > 1 && go(to(number - 1)) },
      { key: "u", help: "its experiment", act: () => go(link(["e", key.ns, key.name])) },
    ],
  );
  return (
    <>
      <nav class="crumbs" aria-label="Where">
        <a href={link([])}>Experiments</a>
        <span aria-hidden="true">/</span>
        <span>{key.ns}</span>
        <span aria-hidden="true">/</span>
        <a href={link(["e", key.ns, key.name])}>{key.name}</a>
        <span aria-hidden="true">/</span>
        <a href={link(["e", key.ns, key.name, "trials"])}>Trials</a>
      </nav>
      <div class="page-head">
        <h1>
          {key.name} / {number}
        </h1>
        <State state={state} />
        <span class="shown">
          {objectiveWords(experiment, trial, value)} ·{" "}
          {plural(trial.status.shirabe.attempts ?? 0, "attempt")}
          {trial.status.shirabe.preemptions
            ? `, ${plural(trial.status.shirabe.preemptions, "preemption")}` : ""}
          {broken !== "" && <span class="broken"> · breaks {broken}</span>}
        </span>
        <div class="tools">
          {number > 1 && <a class="button" href={to(number - 1)}>Previous</a>}
          {number < most && <a class="button" href={to(number + 1)}>Next</a>}
          {more && ended && <button onClick={() => void retry()}>Retry</button>}
          {more && <button onClick={() => setTrying(true)}>Try with changes</button>}
          {rights.change && !ended && <button onClick={() => void stop()}>Stop this trial</button>}
        </div>
      </div>
      {trying && (
        <TryForm
          about={key}
          number={number}
          parameters={experiment.spec.parameters ?? []}
          assignments={trial.spec.parameterAssignments}
          onClose={() => setTrying(false)}
        />
      )}
      {trial.status.shirabe.waiting && (
        <p class="banner" role="status">
          <strong>Why it waits</strong>
          <span>{trial.status.shirabe.waiting}</span>
        </p>
      )}
    </>
  );
}

export default function TrialPage() {
  const [, ns = "", name = "", id = "", tab = ""] = place.value.path;
  const key = { ns, name };
  const number = Number(id);
  const valid = Number.isInteger(number) && number > 0;
  const loadId = valid ? `${idOf(key)}/${number}` : "";
  const watch = useChanges(
    key,
    (changes) => {
      const own = `${name}-${number}`;
      if (changes.some((one) => one.trial === own)) loaded.again();
    },
    1000,
  );
  const loaded = useLoad(loadId, (abort) => load(key, number, abort), watch);
  useEffect(() => void loadRights(ns).catch(() => undefined), [ns]);
  useEffect(() => void (document.title = `${name}/${id} · Shirabe`), [name, id]);
  if (!loaded.value) {
    return (
      <main id="main" class="page" aria-busy={!loaded.error}>
        <h1>
          {name} / {id}
        </h1>
        {loaded.error && <p class="problem">{loaded.error.message}</p>}
        {!valid && <p class="problem">{id} is not the number of a trial</p>}
      </main>
    );
  }
  const view = { ...loaded.value, again: loaded.again };
  return (
    <main id="main" class="page">
      <Head view={view} />
      <nav class="tabs" aria-label="Views of this trial">
        {TABS.map(([path, title]) => (
          <a
            key={path}
            href={link(["t", ns, name, number, ...(path === "" ? [] : [path])])}
            aria-current={path === tab ? "page" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      <Part name={tab} view={view} />
    </main>
  );
}
