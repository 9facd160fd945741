// What a trial came to where there is more than one number to it: each objective, and what became
// of each constraint.
import type { Experiment, Trial } from "../api/records.js";
import { numberOf } from "../api/records.js";
import { plural, short } from "../format.js";
import { constraintWords, hasFront } from "../objectives.js";
import { Panel } from "../ui/panel.js";
import { Icon } from "../ui/state.js";
import { PlainTable } from "../ui/table.js";
import { link } from "../url.js";
import { namespaceFlag } from "./context.js";
import type { TrialView } from "./trial.js";

type Results = Trial["status"]["shirabe"];

// "memory by 0.2"; "" where all is kept, or not known yet.
export function brokenIn(results: Results): string {
  return (results.constraints ?? []).flatMap((one) => {
    const by = numberOf(one.brokenBy);
    return by > 0 ? [`${one.metricName} by ${short(by)}`] : [];
  }).join(", ");
}

// "error 0.3 · latency 12", or the only objective.
export function objectiveWords(experiment: Experiment, trial: Trial, only: number): string {
  const { objectives } = trial.status.shirabe;
  if (!objectives) return `${experiment.spec.objective.objectiveMetricName} ${short(only)}`;
  return objectives.map((one) => `${one.metricName} ${short(numberOf(one.value))}`).join(" · ");
}

// Of a front of more trials than the record lists, those left out are not known here.
function FrontLine({ view }: { view: TrialView }) {
  const { key, experiment, trial } = view;
  if (!hasFront(experiment)) return null;
  const { size = 0, trials = [] } = experiment.status?.shirabe?.front ?? {};
  const on = trials.some((one) => one.trialName === trial.metadata.name);
  const words = on ? `It is on the front, of ${plural(size, "trial")}`
    : trials.length < size ? `The front has ${plural(size, "trial")}` : "It is not on the front";
  return (
    <p>
      {words}: <a href={link(["e", key.ns, key.name, "pareto"])}>Pareto</a>
    </p>
  );
}

function Objectives({ view }: { view: TrialView }) {
  const { key, number, trial, best } = view;
  const objectives = trial.status.shirabe.objectives ?? [];
  const others = best?.status.shirabe.objectives ?? [];
  const bestOf = (name: string) => others.find((one) => one.metricName === name)?.value;
  const rows = objectives.map((one) => [
    one.metricName, one.type, short(numberOf(one.value)),
    ...(best ? [short(numberOf(bestOf(one.metricName)))] : []),
  ]);
  const columns = ["objective", "wanted", "value", ...(best ? ["of the best trial"] : [])];
  return (
    <Panel
      title="Objectives"
      class="half"
      command={`shirabe describe trial ${key.name}/${number}${namespaceFlag(key)}`}
      table={() => ({ columns, rows })}
    >
      <PlainTable
        label="Objectives"
        headed
        columns={columns}
        rows={rows.map((cells) => ({ key: cells[0]!, cells }))}
      />
      <FrontLine view={view} />
    </Panel>
  );
}

type Constraint = NonNullable<Results["constraints"]>[number];

function boundWords({ metricName, min, max }: Constraint): string {
  return constraintWords({
    metric: metricName,
    min: min === undefined ? -Infinity : numberOf(min),
    max: max === undefined ? Infinity : numberOf(max),
  });
}

function keptWords(one: Constraint): string {
  if (Number.isNaN(numberOf(one.value))) return "not known: never reported";
  const by = numberOf(one.brokenBy);
  return by > 0 ? `broken by ${short(by)}` : "kept";
}

function Kept({ one }: { one: Constraint }) {
  const words = keptWords(one);
  const look = words === "kept" ? (["good", "check"] as const)
    : words.startsWith("broken") ? (["bad", "cross"] as const) : (["wait", "ring"] as const);
  return (
    <span class={`state ${look[0]}`}>
      <Icon shape={look[1]} />
      {words}
    </span>
  );
}

function Constraints({ view }: { view: TrialView }) {
  const { key, number, trial } = view;
  const constraints = trial.status.shirabe.constraints ?? [];
  const columns = ["constraint", "value", "kept?"];
  return (
    <Panel
      title="Constraints"
      class="half"
      command={`shirabe describe trial ${key.name}/${number}${namespaceFlag(key)}`}
      table={() => ({
        columns,
        rows: constraints.map((one) => [
          boundWords(one), short(numberOf(one.value)), keptWords(one),
        ]),
      })}
    >
      <PlainTable
        label="Constraints"
        headed
        columns={columns}
        rows={constraints.map((one) => ({
          key: one.metricName,
          cells: [boundWords(one), short(numberOf(one.value)), <Kept one={one} />],
        }))}
      />
    </Panel>
  );
}

export function ResultPanels({ view }: { view: TrialView }) {
  const { objectives = [], constraints = [] } = view.trial.status.shirabe;
  return (
    <>
      {objectives.length > 0 && <Objectives view={view} />}
      {constraints.length > 0 && <Constraints view={view} />}
    </>
  );
}
