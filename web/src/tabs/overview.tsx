// Does it work, how long yet, what will it cost, why does something wait, what comes next?
import { getTrial, suggestions } from "../api/experiments.js";
import type { TrialColumns } from "../api/columns.js";
import { bestSoFar } from "../api/columns.js";
import type { Assignment, Experiment } from "../api/records.js";
import {
  age, argumentsOf, clock, count, duration, known, money, percent, plural, short, word,
} from "../format.js";
import { useLoad, useNow } from "../load.js";
import { constraintsOf, hasFront, objectivesOf } from "../objectives.js";
import { namespaceFlag, useShared } from "../pages/context.js";
import {
  bestNumber, bestOf, completedTrials, countsOf, currencyOf, finishedTrials, isEnded, maximizes,
  metricValue,
} from "../state.js";
import { CandidateList } from "../ui/candidates.js";
import { copy } from "../ui/dialog.js";
import { Facts, factTable } from "../ui/facts.js";
import type { Fact } from "../ui/facts.js";
import { Empty, Panel } from "../ui/panel.js";
import { Progress, progressFacts } from "../ui/progress.js";
import { State } from "../ui/state.js";
import { link } from "../url.js";
import { FollowUp } from "./follow_up.js";
import { History } from "./history.js";

function Pairs(props: { assignments: Assignment[] }) {
  return (
    <dl class="pairs">
      {props.assignments.map(({ name, value }) => (
        <>
          <dt>{name}</dt>
          <dd class="mono">{word(value)}</dd>
        </>
      ))}
    </dl>
  );
}

// Where there are several objectives the best is that of the first one alone.
function FrontFacts() {
  const { key, experiment } = useShared();
  const best = experiment.status?.currentOptimalTrial;
  const front = experiment.status?.shirabe?.front ?? {};
  if (!hasFront(experiment) || !best) return null;
  const others = objectivesOf(experiment).slice(1).map(({ metric }) =>
    `${metric} ${short(metricValue(experiment, best.observation.metrics, metric))}`);
  return (
    <>
      <p>with {others.join(", ")}</p>
      <p>
        It is the best in the first objective, of{" "}
        <a href={link(["e", key.ns, key.name, "pareto"])}>
          {plural(front.size ?? 0, "trial")} on the front
        </a>
        {front.hypervolume !== undefined && `, whose hypervolume is ${short(front.hypervolume)}`}.
      </p>
    </>
  );
}

function Best() {
  const { key, experiment } = useShared();
  const best = experiment.status?.currentOptimalTrial;
  const metric = experiment.spec.objective.objectiveMetricName;
  const number = bestNumber(experiment);
  const goal = experiment.spec.objective.goal;
  const needed = objectivesOf(experiment).map((one) => one.metric).join(" and ");
  const constrained = constraintsOf(experiment).length > 0;
  return (
    <Panel
      title="Best trial"
      class="third"
      command={`shirabe best ${key.name}${namespaceFlag(key)} -o args`}
      table={best && (() => ({
        columns: ["parameter", "value"],
        rows: best.parameterAssignments.map((one) => [one.name, word(one.value)]),
      }))}
    >
      {best ? (
        <>
          <div class="best-value">{short(bestOf(experiment))}</div>
          <p class="dim">
            {metric}, {maximizes(experiment) ? "as high" : "as low"} as possible
            {goal !== undefined && `, goal ${short(goal)}`} ·{" "}
            <a href={link(["t", key.ns, key.name, number])}>trial {number}</a>
          </p>
          <FrontFacts />
          <Pairs assignments={best.parameterAssignments} />
          <p>
            <button onClick={() => void copy(argumentsOf(best.parameterAssignments))}>
              Copy as arguments
            </button>
          </p>
        </>
      ) : (
        <Empty title={isEnded(experiment) ? "No result" : "No result yet"}>
          <p>
            {finishedTrials(experiment) === 0
              ? isEnded(experiment) ? "No trial has ended." : "No trial has ended so far."
              : `Of ${plural(finishedTrials(experiment), "trial")} that ended, none reported a ` +
                `finite ${needed}${constrained ? ", and kept all constraints" : ""}.`}
          </p>
        </Empty>
      )}
    </Panel>
  );
}

interface Outlook {
  mean: number; // seconds of a trial that has ended
  left: number; // trials
  eta: number; // seconds
  cost: number; // of all, in the end
  improved: number; // times
  since: number; // trials that have ended since the last of them
}

function outlookOf(experiment: Experiment, table: TrialColumns): Outlook {
  const [from, to] = [table.values("start"), table.values("end")];
  let [sum, n] = [0, 0];
  for (let row = 0; row < table.rows; ++row) {
    const took = to[row]! - from[row]!;
    if (Number.isNaN(took)) continue;
    sum += took;
    ++n;
  }
  const best = bestSoFar(table, maximizes(experiment));
  let [improved, last] = [0, 0];
  for (let row = 0; row < table.rows; ++row) {
    if (!Number.isNaN(best[row]!) && best[row] !== best[row - 1]) {
      ++improved;
      last = row;
    }
  }
  const max = experiment.spec.maxTrialCount ?? NaN;
  const done = completedTrials(experiment);
  const left = Math.max(0, max - done);
  const mean = n === 0 ? NaN : sum / n;
  const parallel = Math.max(1, experiment.spec.parallelTrialCount ?? 3);
  const cost = experiment.status?.shirabe?.cost ?? 0;
  return {
    mean, left, eta: (left * mean) / Math.min(parallel, Math.max(left, 1)),
    cost: done === 0 ? NaN : (cost / done) * max,
    improved, since: table.rows - 1 - last,
  };
}

// What became of the time and the money, and what is still to come.
function factsOf(experiment: Experiment, table: TrialColumns | undefined, now: number): Fact[] {
  const extras = experiment.status?.shirabe ?? {};
  const outlook = table && outlookOf(experiment, table);
  const currency = currencyOf(experiment);
  const cost = extras.cost ?? 0;
  const budget = experiment.spec.shirabe?.budget?.maxCost;
  const wasted = (extras.wastedSeconds ?? 0) / Math.max(extras.seconds ?? 0, 1e-9);
  const start = experiment.status?.startTime;
  const end = experiment.status?.completionTime;
  const took = start && end ? (Date.parse(end) - Date.parse(start)) / 1000 : NaN;
  const few = completedTrials(experiment) < 3;
  const ended = isEnded(experiment);
  const facts: Fact[] = [ended ? {
    name: "Took", value: known(took), more: `ended ${clock(end, now)}`,
  } : {
    name: "Time left",
    value: few || !outlook || Number.isNaN(outlook.eta) ? "too early to tell"
      : `about ${duration(outlook.eta)}`,
    more: outlook && Number.isFinite(outlook.left)
      ? `${plural(outlook.left, "trial")} to go; running for ${age(start, now)}`
      : `running for ${age(start, now)}`,
  }, {
    name: "A trial takes", value: known(outlook?.mean ?? NaN),
    more: "on average, with its interruptions",
  }, {
    name: "Does it get better?",
    value: outlook && outlook.improved > 0 ? plural(outlook.improved, "improvement") : "–",
    more: outlook && outlook.improved > 0
      ? `${hasFront(experiment) ? "of the first objective, " : ""}` +
        (outlook.since === 0 ? "the last by the newest trial"
          : `the last ${plural(outlook.since, "trial")} ago`)
      : "no result so far",
  }];
  if (cost > 0) {
    facts.push({
      name: "Cost", value: money(cost, currency), more: [
        budget !== undefined && `${percent(cost / budget)} of ${money(budget, currency)}`,
        !ended && outlook && !few && !Number.isNaN(outlook.cost) &&
          `about ${money(outlook.cost, currency)} in the end`,
        (extras.onDemandCost ?? 0) > cost &&
          `${percent(1 - cost / extras.onDemandCost!)} less than on demand`,
      ].filter(Boolean).join("; "),
    });
  }
  facts.push({
    name: "Lost to preemptions",
    value: (extras.preemptions ?? 0) === 0 ? "nothing" : percent(wasted),
    more: `${plural(extras.preemptions ?? 0, "preemption")}, ` +
      `${duration(extras.wastedSeconds ?? 0)} done again`,
  }, {
    name: "Computed", value: known(extras.seconds ?? 0),
    more: `in ${plural(experiment.status?.trials ?? 0, "trial")}, ` +
      `${count(experiment.spec.parallelTrialCount ?? 3)} at the same time`,
  });
  return facts;
}

function Standing() {
  const { experiment, data, key } = useShared();
  const now = useNow(2000);
  const facts = factsOf(experiment, data?.table, now);
  return (
    <Panel
      title="How far, how long, how dear"
      command={`shirabe describe exp ${key.name}${namespaceFlag(key)}`}
      table={() => factTable([...progressFacts(countsOf(experiment)), ...facts])}
    >
      <Progress counts={countsOf(experiment)} wide />
      <div style={{ marginTop: "1rem" }}><Facts facts={facts} /></div>
    </Panel>
  );
}

function Now() {
  const { key, experiment, data } = useShared();
  const now = useNow(1000);
  const table = data?.table;
  const open: number[] = [];
  for (let row = (table?.rows ?? 0) - 1; row >= 0 && open.length < 12; --row) {
    const state = table!.column("state")!.word(row);
    if (state === "Running" || state === "Pending") open.push(row);
  }
  const metric = experiment.spec.objective.objectiveMetricName;
  // Columns hold no sentences: why a trial waits is in its record.
  const waits = open.filter((row) => table!.column("state")!.word(row) === "Pending")
    .map((row) => table!.trial(row));
  const reasons = useLoad(waits.length === 0 ? "" : `${waits.join()}/${data?.version}`, (abort) =>
    Promise.all(waits.map((trial) => getTrial(key, trial, abort))));
  const why = new Map((reasons.value ?? []).map((one) =>
    [one.status.shirabe.number, one.status.shirabe.waiting ?? ""]));
  return (
    <Panel
      title="Now"
      class="half"
      command={`shirabe get trials ${key.name}${namespaceFlag(key)} --filter state=Running -w`}
      table={() => ({
        columns: ["trial", "state", metric, "step", "for", "why it waits"],
        rows: open.map((row) => [
          table!.trial(row), table!.column("state")!.word(row) ?? "",
          short(table!.values("objective")[row]), short(table!.values("lastStep")[row]),
          known(now / 1000 - table!.values("start")[row]!), why.get(table!.trial(row)) ?? "",
        ]),
      })}
    >
      {open.length === 0 ? (
        <p class="dim">
          {isEnded(experiment) ? "The experiment has ended: nothing runs." : "Nothing runs now."}
        </p>
      ) : (
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">Trial</th>
              <th scope="col">State</th>
              <th scope="col" class="number">
                {metric}
              </th>
              <th scope="col" class="number">
                Step
              </th>
              <th scope="col" class="number">
                For
              </th>
            </tr>
          </thead>
          <tbody>
            {open.map((row) => {
              const trial = table!.trial(row);
              return (
                <tr key={trial}>
                  <td>
                    <a href={link(["t", key.ns, key.name, trial])}>{trial}</a>
                  </td>
                  <td>
                    <State state={table!.state(row)} />
                    {why.get(trial) && <small class="pre"> {why.get(trial)}</small>}
                  </td>
                  <td class="number">{short(table!.values("objective")[row])}</td>
                  <td class="number">{short(table!.values("lastStep")[row])}</td>
                  <td class="number">
                    {duration(now / 1000 - table!.values("start")[row]!)}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

function Next() {
  const { key, experiment } = useShared();
  const done = finishedTrials(experiment);
  const ended = isEnded(experiment);
  const loaded = useLoad(ended ? "" : `${key.ns}/${key.name}/${done}`, (abort) =>
    suggestions(key, 5, abort),
  );
  return (
    <Panel
      title="Next suggestions"
      class="half"
      command={`shirabe suggest ${key.name}${namespaceFlag(key)} --count 5`}
      table={loaded.value && (() => ({
        columns: ["", ...(loaded.value!.items[0]?.parameterAssignments ?? []).map((a) => a.name)],
        rows: loaded.value!.items.map((one, i) => [
          i + 1, ...one.parameterAssignments.map((a) => word(a.value)),
        ]),
      }))}
    >
      {ended ? (
        <p class="dim">The experiment has ended: nothing more is suggested.</p>
      ) : loaded.error ? (
        <p class="dim">{loaded.error.message}</p>
      ) : loaded.value ? (
        <CandidateList candidates={loaded.value} />
      ) : (
        <p class="dim">Asking the algorithm…</p>
      )}
    </Panel>
  );
}

export default function Overview() {
  return (
    <div class="panels">
      <Best />
      <History class="two-thirds" />
      <Standing />
      <FollowUp />
      <Now />
      <Next />
    </div>
  );
}
