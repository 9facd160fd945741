// The parts of a trial's page that need nothing more than its records.
import { pathOf } from "../api/experiments.js";
import { ask } from "../api/http.js";
import type { Assignment, Attempt, Experiment, Trial } from "../api/records.js";
import { numberOf } from "../api/records.js";
import { causeOf, exitWords } from "../cause.js";
import {
  argumentsOf, bytes, clock, duration, money, percent, plural, short, word,
} from "../format.js";
import { useLoad, useNow } from "../load.js";
import { lastLines } from "../log.js";
import { currencyOf } from "../state.js";
import { copy } from "../ui/dialog.js";
import { Empty, Panel } from "../ui/panel.js";
import { Icon } from "../ui/state.js";
import { PlainTable } from "../ui/table.js";
import { link } from "../url.js";
import { namespaceFlag } from "./context.js";
import type { TrialView } from "./trial.js";
import { ResultPanels } from "./trial_results.js";

// The parameters that either of two trials has, in the experiment's order.
export function bothPoints(
  order: { name: string }[], own: Assignment[], best: Assignment[] | undefined,
): { name: string; value: string; other: string; differs: boolean }[] {
  const valueIn = (list: Assignment[] | undefined, name: string) =>
    list?.find((one) => one.name === name)?.value;
  const names = new Set([...order, ...own, ...(best ?? [])].map((one) => one.name));
  return [...names].flatMap((name) => {
    const [value, other] = [valueIn(own, name), valueIn(best, name)];
    if (value === undefined && other === undefined) return [];
    const differs = best !== undefined && other !== value;
    return [{ name, value: word(value ?? "–"), other: word(other ?? "–"), differs }];
  });
}

function Point(props: { view: TrialView }) {
  const { key, number, trial, best, experiment } = props.view;
  const assignments = trial.spec.parameterAssignments;
  const metrics = trial.status.observation?.metrics ?? [];
  const own = experiment.spec.objective.objectiveMetricName;
  const bestMetrics = best?.status.observation?.metrics ?? [];
  const rows = bothPoints(
    experiment.spec.parameters ?? [], assignments, best?.spec.parameterAssignments,
  );
  const args = argumentsOf(assignments);
  return (
    <Panel
      title={best ? "Point, beside that of the best trial" : "Point"}
      class="half"
      command={best
        ? `shirabe compare ${key.name}/${number} ${best.metadata.name}${namespaceFlag(key)}`
        : `shirabe describe trial ${key.name}/${number}${namespaceFlag(key)}`}
      table={() => ({
        columns: ["parameter", "this trial", ...(best ? ["best"] : [])],
        rows: rows.map((row) => [row.name, row.value, ...(best ? [row.other] : [])]),
      })}
    >
      <table class="plain-table wraps">
        <thead>
          <tr>
            <th scope="col">Parameter</th>
            <th scope="col">This trial</th>
            {best && (
              <th scope="col">
                <a href={link(["t", key.ns, key.name, best.status.shirabe.number])}>
                  Best, {best.status.shirabe.number}
                </a>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name} class={row.differs ? "differs" : undefined}>
              <th scope="row">{row.name}</th>
              <td class="mono">{row.value}</td>
              {best && <td class="mono">{row.differs ? row.other : "same"}</td>}
            </tr>
          ))}
          {metrics.map((metric) => {
            const other = bestMetrics.find((one) => one.name === metric.name);
            const pick = experiment.spec.objective.type === "maximize" ? "max" : "min";
            const kind = metric.name === own ? pick : "latest";
            return (
              <tr key={metric.name} class="result">
                <th scope="row">
                  {metric.name} <small>{kind === "latest" ? "last" : "best"}</small>
                </th>
                <td class="mono">{short(numberOf(metric[kind]))}</td>
                {best && <td class="mono">{short(numberOf(other?.[kind]))}</td>}
              </tr>
            );
          })}
        </tbody>
      </table>
      <p>
        <button onClick={() => void copy(args)}>Copy as arguments</button>
      </p>
    </Panel>
  );
}

export function Overview(props: { view: TrialView }) {
  const { trial, experiment, key, number, attempts } = props.view;
  const extras = trial.status.shirabe;
  const now = useNow(1000);
  const currency = currencyOf(experiment);
  const conditions = trial.status.conditions.filter((one) => one.status === "True");
  const last = conditions.at(-1);
  const start = trial.status.startTime;
  const end = trial.status.completionTime;
  const took = start ? ((end ? Date.parse(end) : now) - Date.parse(start)) / 1000 : NaN;
  const rows: [string, string][] = [
    ["Why this point", extras.explanation ?? "–"],
    ["State", last ? `${last.message}` : "–"],
    ["Started", start ? clock(start, now) : "not yet"],
    [end ? "Ended" : "Runs for", !end ? duration(took) : took > 0
      ? `${clock(end, now)}, after ${duration(took)}` : clock(end, now)],
    ["Ran", extras.seconds || !end
      ? `${duration(extras.seconds ?? 0)} in ${plural(extras.attempts ?? 0, "attempt")}` : "–"],
    ["Lost", extras.wastedSeconds
      ? `${duration(extras.wastedSeconds)}, ${percent(extras.wastedSeconds /
        Math.max(extras.seconds ?? 0, 1e-9))} of that`
      : "nothing"],
    ["Cost", extras.cost ? `${money(extras.cost, currency)}` +
      (extras.onDemandCost ? `; on demand ${money(extras.onDemandCost, currency)}` : "") : "–"],
    ["Last step", short(extras.lastStep)],
  ];
  if (extras.parent) {
    rows.push(["Went on from", `trial ${extras.parent.trial} at step ${extras.parent.step}`]);
  }
  return (
    <div class="panels">
      <Point view={props.view} />
      <Panel
        title="What happened"
        class="half"
        command={`shirabe describe trial ${key.name}/${number}${namespaceFlag(key)}`}
        table={() => ({ columns: ["", ""], rows })}
      >
        <dl class="pairs">
          {rows.map(([name, value]) => (
            <>
              <dt>{name}</dt>
              <dd class="pre">{value}</dd>
            </>
          ))}
        </dl>
        {attempts.length > 0 && <Lane attempts={attempts} now={now} />}
        {attempts.length > 0 && hasLastLines(experiment, trial) && (
          <LastLines view={props.view} attempt={attempts.at(-1)!.number} />
        )}
      </Panel>
      <ResultPanels view={props.view} />
    </div>
  );
}

// Of one that has ended badly, and was run from here.
function hasLastLines(experiment: Experiment, trial: Trial): boolean {
  return experiment.spec.shirabe?.askAndTell !== true &&
    ["Failed", "MetricsUnavailable", "Killed"].includes(trial.status.shirabe.phase);
}

// What its program printed before it ended: that often says why.
function LastLines(props: { view: TrialView; attempt: number }) {
  const { key, number } = props.view;
  const path = `${pathOf(key)}/trials/${number}/attempts/${props.attempt}/log`;
  const { value } = useLoad(path, async (abort) =>
    lastLines((await ask(path, { abort })).body!, 10));
  if (value === undefined || value === "") return null;
  return (
    <section aria-label="Last lines">
      <p class="dim">
        {value === null ? "Its log is a long one: see " : "The last lines of "}
        <a href={link(["t", key.ns, key.name, number, "log"])}>its log</a>
      </p>
      {value !== null && <pre class="code pre" tabIndex={0}>{value}</pre>}
    </section>
  );
}

// The attempts of one trial, one after the other.
function Lane(props: { attempts: Attempt[]; now: number }) {
  const times = props.attempts.map((one) => ({
    from: one.start ? Date.parse(one.start) : props.now,
    to: one.end ? Date.parse(one.end) : props.now,
    look: causeOf(one),
    attempt: one,
  }));
  const first = Math.min(...times.map((one) => one.from));
  const last = Math.max(...times.map((one) => one.to), first + 1);
  const at = (time: number) => `${((time - first) / (last - first)) * 100}%`;
  return (
    <figure class="lane" aria-label="Attempts over time">
      {times.map((one) => (
        <span
          key={one.attempt.number}
          class={`lane-part ${one.look.tone}`}
          title={`attempt ${one.attempt.number}: ${one.look.word}`}
          style={{
            left: at(one.from),
            width: `max(6px, calc(${at(one.to)} - ${at(one.from)} - 1px))`,
          }}
        >
          <Icon shape={one.look.shape} />
        </span>
      ))}
    </figure>
  );
}

function Cause(props: { attempt: Attempt }) {
  const look = causeOf(props.attempt);
  const { message } = props.attempt.status;
  return (
    <>
      <span class={`state ${look.tone}`}>
        <Icon shape={look.shape} />
        {look.word}
      </span>
      {message && <small class="pre"> {message}</small>}
    </>
  );
}

export function Attempts(props: { view: TrialView }) {
  const { key, number, attempts, experiment } = props.view;
  const now = useNow(1000);
  const currency = currencyOf(experiment);
  const columns = ["attempt", "why it ended", "exit", "node", "capacity", "started", "ran", "cost",
    "resumed from", "gained", "done again", "lost"];
  const rows = attempts.map((one) => [
    one.number, causeOf(one).word, exitWords(one), one.node ?? "–", one.capacity ?? "–",
    one.start ? clock(one.start, now) : "–",
    duration(one.end || !one.start ? (one.seconds ?? 0) : (now - Date.parse(one.start)) / 1000),
    one.cost ? money(one.cost, currency) : "–",
    one.resumedFromStep > 0 ? `step ${one.resumedFromStep}` : "the beginning",
    one.stepsGained, one.stepsRedone,
    one.status.wastedSeconds ? duration(one.status.wastedSeconds) : "–",
  ]);
  return (
    <Panel
      title="Attempts"
      command={`shirabe get attempts ${key.name}/${number}${namespaceFlag(key)}`}
      table={() => ({ columns, rows })}
    >
      {attempts.length === 0 && <Empty title="It has not been started yet" />}
      <PlainTable
        label="Attempts"
        headed
        columns={[...columns, "log"]}
        rows={attempts.map((one, i) => ({
          key: one.number,
          cells: [
            one.number, <Cause attempt={one} />, ...rows[i]!.slice(2),
            <a href={link(["t", key.ns, key.name, number, "log"], { attempt: one.number })}>
              log {one.number}
            </a>,
          ],
        }))}
      />
    </Panel>
  );
}

export function Checkpoints(props: { view: TrialView }) {
  const { key, number, checkpoints } = props.view;
  const now = useNow(5000);
  const columns = ["attempt", "step", "size", "saved", "objective", "state", "digest"];
  const there = checkpoints.filter((one) => !one.gone);
  const rows = checkpoints.map((one) => [
    one.attempt, one.step, bytes(one.bytes), clock(one.time, now), short(numberOf(one.objective)),
    one.gone ?? "kept", one.digest.slice(0, 12),
  ]);
  return (
    <Panel
      title="Checkpoints"
      shown={`${there.length} of ${checkpoints.length} kept`}
      command={`shirabe get checkpoints ${key.name}/${number}${namespaceFlag(key)}`}
      table={() => ({ columns, rows })}
    >
      {checkpoints.length === 0 ? (
        <Empty title="No checkpoint was saved">
          <p>
            A trial that saves none begins at step 0 when its machine goes away. A program saves
            into{" "}
            <code>$SHIRABE_CHECKPOINT_DIR</code>.
          </p>
        </Empty>
      ) : (
        <PlainTable
          label="Checkpoints"
          columns={columns}
          rows={rows.map((cells, i) => ({
            key: i, cells, class: checkpoints[i]!.gone ? "dim" : undefined,
          }))}
        />
      )}
    </Panel>
  );
}
