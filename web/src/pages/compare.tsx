// Up to eight experiments, or trials, side by side.
import uPlot from "uplot";
import { useEffect, useMemo } from "preact/hooks";
import type { Key } from "../api/experiments.js";
import {
  getExperiment, getTrial, idOf, keyFromId,
} from "../api/experiments.js";
import { bestSoFar } from "../api/columns.js";
import { readCurves } from "../api/observations.js";
import type { Experiment, Trial } from "../api/records.js";
import { listKeys } from "../api/summaries.js";
import { numberOf } from "../api/records.js";
import { TrialStore } from "../api/trials.js";
import type { TrialData } from "../api/trials.js";
import { duration, money, plural, shellWord, short } from "../format.js";
import { hasFront } from "../objectives.js";
import { useLoad } from "../load.js";
import {
  algorithmOf, bestOf, completedTrials, currencyOf, maximizes, stateOf, lookOf,
} from "../state.js";
import { colour } from "../theme.js";
import { Chart } from "../ui/chart.js";
import { Empty, Panel } from "../ui/panel.js";
import { PlainTable } from "../ui/table.js";
import { link, place, setParams } from "../url.js";
import { brokenIn } from "./trial_results.js";

const MOST = 8;
export const TINTS = ["accent", "best", "early", "good", "run", "bad", "pause", "lost"];
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [], [8, 4], [2, 3], [10, 3, 2, 3]];

interface Side {
  name: string;
  href: string;
  facts: Map<string, string>;
}

// What differs stands out; what is the same everywhere can be left out.
function Table(props: { title: string; sides: Side[]; command: string }) {
  const { sides } = props;
  const names = [...new Set(sides.flatMap((one) => [...one.facts.keys()]))];
  const rows = names.map((name) => {
    const values = sides.map((one) => one.facts.get(name) ?? "–");
    return { name, values, differs: new Set(values).size > 1 };
  });
  return (
    <Panel
      title={props.title}
      command={props.command}
      table={() => ({
        columns: ["", ...sides.map((one) => one.name)],
        rows: rows.map((row) => [row.name, ...row.values]),
      })}
    >
      <PlainTable
        label={props.title}
        headed
        cellClass="mono"
        columns={["", ...sides.map((one, i) => (
          <span class="state">
            <span class="swatch" style={{ background: `var(--${TINTS[i]})` }} />
            <a href={one.href}>{one.name}</a>
          </span>
        ))]}
        rows={rows.map((row) => ({
          key: row.name, cells: [row.name, ...row.values], class: row.differs ? "differs" : "dim",
        }))}
      />
    </Panel>
  );
}

interface Line {
  name: string;
  x: number[];
  y: (number | null)[];
}

interface LinesProps {
  title: string;
  lines: Line[];
  x: string;
  y: string;
  command: string;
  steps?: boolean; // a value holds until the next one
}

function Lines(props: LinesProps) {
  const { lines } = props;
  const data = useMemo(
    () => uPlot.join(lines.map((one) => [one.x, one.y] as uPlot.AlignedData)), [lines],
  );
  const summary = `${props.title}: ` + lines.map((one) => {
    const last = one.y.filter((v) => v !== null).at(-1);
    return `${one.name} ends at ${short(last ?? NaN)}`;
  }).join(", ");
  const options = () => ({
    scales: { x: { time: false } },
    focus: { alpha: 0.3 },
    cursor: { focus: { prox: 20 }, points: { show: true } },
    series: [{}, ...lines.map((_, i) => ({
      stroke: () => colour(TINTS[i % TINTS.length]!), width: 2,
      dash: DASHES[i % DASHES.length]!, spanGaps: true, points: { show: false },
      ...(props.steps ? { paths: uPlot.paths.stepped!({ align: 1 }) } : {}),
    }))],
  });
  const at = (u: uPlot) => {
    const i = u.cursor.idx;
    if (i === null || i === undefined) return null;
    const text = lines.map((one, j) => `${one.name}: ${short(u.data[j + 1]![i] ?? NaN)}`);
    return { text: `${props.x} ${short(u.data[0][i])}\n${text.join("\n")}` };
  };
  return (
    <Panel
      title={props.title}
      image
      summary={summary}
      command={props.command}
      table={() => ({
        columns: [props.x, ...lines.map((one) => one.name)],
        rows: Array.from(data[0], (x, i) => [x, ...lines.map((_, j) => short(data[j + 1]![i]))]),
      })}
    >
      <Chart
        data={data}
        options={options}
        form={lines.map((one) => one.name).join()}
        label={summary}
        x={props.x}
        y={props.y}
        at={at}
      />
    </Panel>
  );
}

// ---- experiments -------------------------------------------------------------------------------

interface Loaded {
  experiment: Experiment;
  data: TrialData | null;
}

async function loadExperiments(ids: string[], abort: AbortSignal): Promise<Loaded[]> {
  return Promise.all(ids.map(async (id) => {
    const key = keyFromId(id);
    const experiment = await getExperiment(key, abort);
    const store = new TrialStore(key);
    await store.load(experiment);
    return { experiment, data: store.data.value };
  }));
}

function sideOf({ experiment }: Loaded): Side {
  const { name, namespace } = experiment.metadata;
  const status = experiment.status ?? {};
  const extras = status.shirabe ?? {};
  const facts = new Map<string, string>([
    ["state", lookOf(stateOf(experiment)).word],
    ["algorithm", algorithmOf(experiment)],
    [`best ${experiment.spec.objective.objectiveMetricName}`, short(bestOf(experiment))],
    ...(hasFront(experiment) ? [
      ["on the front", String(extras.front?.size ?? 0)],
      ["hypervolume", short(extras.front?.hypervolume)],
    ] as [string, string][] : []),
    ["trials completed", String(completedTrials(experiment))],
    ["failed", String(status.trialsFailed ?? 0)],
    ["computed", duration(extras.seconds ?? 0)],
    ["cost", money(extras.cost ?? 0, currencyOf(experiment))],
    ["preemptions", String(extras.preemptions ?? 0)],
    ["lost to them", duration(extras.wastedSeconds ?? 0)],
  ]);
  for (const one of status.currentOptimalTrial?.parameterAssignments ?? []) {
    facts.set(`best: ${one.name}`, one.value);
  }
  return { name, href: link(["e", namespace, name]), facts };
}

function linesOf(all: Loaded[]): Line[] {
  return all.flatMap(({ experiment, data }) => {
    if (!data || data.table.rows === 0) return [];
    const best = bestSoFar(data.table, maximizes(experiment));
    return [{
      name: experiment.metadata.name,
      x: Array.from(data.table.values("trial").subarray(0, data.table.rows)),
      y: Array.from(best, (v) => (Number.isNaN(v) ? null : v)),
    }];
  });
}

function Experiments(props: { ids: string[] }) {
  const loaded = useLoad(props.ids.join(), (abort) => loadExperiments(props.ids, abort));
  const lines = useMemo(() => linesOf(loaded.value ?? []), [loaded.value]);
  if (loaded.error) return <p class="problem">{loaded.error.message}</p>;
  if (!loaded.value) return <div aria-busy="true" />;
  const metrics = new Set(
    loaded.value.map((one) => one.experiment.spec.objective.objectiveMetricName),
  );
  const names = props.ids.map((id) => shellWord(keyFromId(id).name)).join(" ");
  const command = `shirabe compare ${names}`;
  return (
    <>
      {metrics.size > 1 && (
        <p class="banner">
          They have different objectives ({[...metrics].join(", ")}): their values do not compare.
        </p>
      )}
      {lines.length > 0 && (
        <Lines
          title="Best so far"
          steps
          lines={lines}
          x="trial"
          y={[...metrics].join(", ")}
          command={command}
        />
      )}
      <Table title="Side by side" sides={loaded.value.map(sideOf)} command={command} />
    </>
  );
}

// ---- trials ------------------------------------------------------------------------------------

interface OneTrial {
  key: Key;
  number: number;
  trial: Trial;
  metric: string;
  line: Line;
}

async function loadTrial(id: string, abort: AbortSignal): Promise<OneTrial> {
  const [ns = "", name = "", n = ""] = id.split("/");
  const key = { ns, name };
  const number = Number(n);
  const experiment = await getExperiment(key, abort);
  const metric = experiment.spec.objective.objectiveMetricName;
  const [trial, curves] = await Promise.all([
    getTrial(key, number, abort), readCurves(key, number, { metric, abort }),
  ]);
  const curve = curves.get(metric)?.[0];
  const y = (curve?.y ?? []).map((v) => (Number.isFinite(v) ? v : null));
  return { key, number, trial, metric, line: { name: trial.metadata.name, x: curve?.x ?? [], y } };
}

function trialSide(one: OneTrial): Side {
  const extras = one.trial.status.shirabe;
  const facts = new Map<string, string>([
    ["state", lookOf(extras.phase).word],
    [one.metric, short(numberOf(extras.objective))],
  ]);
  for (const further of extras.objectives?.slice(1) ?? []) {
    facts.set(further.metricName, short(numberOf(further.value)));
  }
  if (extras.constraints) facts.set("breaks", brokenIn(extras) || "nothing");
  for (const metric of one.trial.status.observation?.metrics ?? []) {
    facts.set(`${metric.name}, last`, short(numberOf(metric.latest)));
  }
  for (const { name, value } of one.trial.spec.parameterAssignments) facts.set(name, value);
  facts.set("attempts", String(extras.attempts ?? 0));
  facts.set("preemptions", String(extras.preemptions ?? 0));
  facts.set("ran", duration(extras.seconds ?? 0));
  const { key, number } = one;
  return { name: one.trial.metadata.name, href: link(["t", key.ns, key.name, number]), facts };
}

function Trials(props: { ids: string[] }) {
  const loaded = useLoad(props.ids.join(), (abort) =>
    Promise.all(props.ids.map((id) => loadTrial(id, abort))),
  );
  if (loaded.error) return <p class="problem">{loaded.error.message}</p>;
  if (!loaded.value) return <div aria-busy="true" />;
  const names = loaded.value.map((one) => shellWord(one.trial.metadata.name)).join(" ");
  const command = `shirabe compare ${names}`;
  const lines = loaded.value.map((one) => one.line).filter((line) => line.x.length > 0);
  const metric = loaded.value[0]?.metric ?? "";
  return (
    <>
      {lines.length > 0 && (
        <Lines title={`Curves of ${metric}`} lines={lines} x="step" y={metric} command={command} />
      )}
      <Table title="Side by side" sides={loaded.value.map(trialSide)} command={command} />
    </>
  );
}

// ---- the page ----------------------------------------------------------------------------------

function Chooser(props: { chosen: string[] }) {
  const loaded = useLoad("experiments", listKeys);
  const ids = (loaded.value ?? []).map(idOf);
  const free = ids.filter((id) => !props.chosen.includes(id));
  return (
    <div class="tools">
      {props.chosen.map((id) => (
        <button
          key={id}
          aria-label={`Leave out ${id}`}
          onClick={() => setParams({ e: props.chosen.filter((one) => one !== id) }, true)}
        >
          {id} <span aria-hidden="true">✕</span>
        </button>
      ))}
      {props.chosen.length < MOST && free.length > 0 && (
        <label>
          <span class="unseen">Add an experiment</span>
          <select
            value=""
            onChange={(event) =>
              setParams({ e: [...props.chosen, event.currentTarget.value] }, true)}
          >
            <option value="">Add an experiment…</option>
            {free.map((id) => (
              <option key={id}>{id}</option>
            ))}
          </select>
        </label>
      )}
    </div>
  );
}

export default function Compare() {
  const all = place.value.params;
  const trials = all.getAll("t");
  const experiments = all.getAll("e");
  useEffect(() => void (document.title = "Compare · Shirabe"), []);
  const shown = (trials.length > 0 ? trials : experiments).slice(0, MOST);
  const given = Math.max(trials.length, experiments.length);
  return (
    <main id="main" class="page">
      <div class="page-head">
        <h1>Compare</h1>
        <span class="shown">
          {trials.length > 0 ? plural(shown.length, "trial") : plural(shown.length, "experiment")}
          {given > MOST && ` of ${given}: no more than ${MOST} fit into a picture`}
        </span>
        {trials.length === 0 && <Chooser chosen={experiments} />}
      </div>
      {shown.length === 0 ? (
        <Empty title="Nothing is chosen yet">
          <p>
            Choose experiments here, or select rows in <a href={link([])}>a list</a> with{" "}
            <kbd>x</kbd>.
          </p>
        </Empty>
      ) : trials.length > 0 ? (
        <Trials ids={shown} />
      ) : (
        <Experiments ids={shown} />
      )}
    </main>
  );
}
