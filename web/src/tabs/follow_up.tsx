// What follows the experiment (spec.shirabe.onSuccess): one job, whether it waits, runs or has
// ended, why, and what it prints.
import { pathOf } from "../api/experiments.js";
import type { Experiment, FollowUpStatus } from "../api/records.js";
import { numberOf } from "../api/records.js";
import { age, clock, count, duration, money, plural, shellWord, short } from "../format.js";
import { useNow, usePart } from "../load.js";
import { namespaceFlag, useShared } from "../pages/context.js";
import { currencyOf, isEnded, lookOf, trialNumberIn } from "../state.js";
import { Facts, factTable } from "../ui/facts.js";
import type { Fact } from "../ui/facts.js";
import { Panel } from "../ui/panel.js";
import { State } from "../ui/state.js";
import { link, param, setParams } from "../url.js";

// Why it is as it is; before the experiment has succeeded it has no record of its own.
export function followUpReason(experiment: Experiment): string {
  const status = experiment.status?.shirabe?.onSuccess;
  if (!status) {
    return isEnded(experiment)
      ? "The experiment has not succeeded: nothing follows it."
      : "It is run once the experiment has succeeded.";
  }
  return status.waiting || status.message || "";
}

function factsOf(status: FollowUpStatus, currency: string, now: number): Fact[] {
  const { startTime, completionTime, attempts = 0, failures = 0, preemptions = 0 } = status;
  const facts: Fact[] = [];
  if (startTime !== undefined) {
    const took = (Date.parse(completionTime ?? "") - Date.parse(startTime)) / 1000;
    facts.push(completionTime === undefined
      ? { name: "Running for", value: age(startTime, now), more: `since ${clock(startTime, now)}` }
      : { name: "Took", value: duration(took), more: `ended ${clock(completionTime, now)}` });
  }
  if (status.notBefore !== undefined && Date.parse(status.notBefore) > now) {
    facts.push({
      name: "Next attempt", value: `in ${duration((Date.parse(status.notBefore) - now) / 1000)}`,
      more: `at ${clock(status.notBefore, now)}`,
    });
  }
  if (attempts > 0) {
    facts.push({
      name: "Attempts", value: count(attempts),
      more: `${count(failures)} ended with an error, ${plural(preemptions, "preemption")}`,
    });
  }
  if ((status.cost ?? 0) > 0) {
    facts.push({
      name: "Cost", value: money(status.cost, currency), more: "beside that of trials",
    });
  }
  return facts;
}

function Given(props: { status: FollowUpStatus }) {
  const { key } = useShared();
  const { bestTrialName = "", objective, resumedFromStep = 0 } = props.status;
  if (bestTrialName === "") return null;
  const trial = trialNumberIn(bestTrialName);
  return (
    <p class="dim">
      With the parameters of <a href={link(["t", key.ns, key.name, trial])}>trial {trial}</a>
      {objective !== undefined && ` (${short(numberOf(objective))})`}
      {Number(resumedFromStep) > 0 &&
        ` and a copy of its checkpoint of step ${count(Number(resumedFromStep))}`}
      .
    </p>
  );
}

// Loaded when a log is first asked for.
function AttemptLog(props: { path: string }) {
  const part = usePart("log", () => import("../tabs/log.js"));
  if (part === undefined) return <div aria-busy="true" />;
  if (part.value === null) {
    return <p class="problem">This part could not be loaded: load the page again.</p>;
  }
  return <part.value.Following path={props.path} tail />;
}

// The attempt whose log is shown stands in the address: 0 = none is.
function FollowUpLog(props: { attempts: number }) {
  const { key } = useShared();
  const asked = Math.floor(Number(param("job")));
  const shown = asked >= 1 && asked <= props.attempts ? asked : 0;
  const show = (attempt: number) => setParams({ job: attempt > 0 ? attempt : "" });
  const numbers = Array.from({ length: props.attempts }, (_, i) => i + 1);
  const command = `shirabe logs ${shellWord(`${key.name}/on-success`)}${namespaceFlag(key)}`;
  return (
    <>
      <div class="tools">
        <button
          aria-expanded={shown > 0}
          onClick={() => show(shown > 0 ? 0 : props.attempts)}
        >
          {shown > 0 ? "Hide the log" : "Show the log"}
        </button>
        {shown > 0 && props.attempts > 1 && (
          <label>
            Attempt
            <select value={shown} onChange={(event) => show(Number(event.currentTarget.value))}>
              {numbers.map((one) => <option key={one} value={one}>{one}</option>)}
            </select>
          </label>
        )}
        <span class="dim">
          as <code>{command}</code>
        </span>
      </div>
      {shown > 0 && <AttemptLog path={`${pathOf(key)}/on-success/attempts/${shown}/log`} />}
    </>
  );
}

export function FollowUp() {
  const { key, experiment } = useShared();
  const now = useNow(1000);
  if (experiment.spec.shirabe?.onSuccess === undefined) return null;
  const status = experiment.status?.shirabe?.onSuccess;
  const state = status?.phase ?? (isEnded(experiment) ? "Skipped" : "Created");
  const reason = followUpReason(experiment);
  const facts = status ? factsOf(status, currencyOf(experiment), now) : [];
  return (
    <Panel
      title="What follows"
      command={`shirabe describe exp ${shellWord(key.name)}${namespaceFlag(key)}`}
      table={() => factTable([
        { name: "State", value: lookOf(state).word, more: reason }, ...facts,
      ])}
    >
      <p>
        <State state={state} />
      </p>
      {reason !== "" && <p class="pre">{reason}</p>}
      {status && <Given status={status} />}
      {facts.length > 0 && <Facts facts={facts} />}
      {(status?.attempts ?? 0) > 0 && <FollowUpLog attempts={status?.attempts ?? 0} />}
    </Panel>
  );
}
