// Up to eight experiments, or trials, side by side.
import uPlot from "uplot";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { getExperiment, getTrial, idOf, keyFromId } from "../api/experiments.js";
import { bestSoFar } from "../api/columns.js";
import { readCurves } from "../api/observations.js";
import type { Experiment } from "../api/records.js";
import { listKeys } from "../api/summaries.js";
import { TrialStore } from "../api/trials.js";
import type { TrialData } from "../api/trials.js";
import { plural, short } from "../format.js";
import { useChanges, useLoad } from "../load.js";
import { maximizes } from "../state.js";
import { colour } from "../theme.js";
import { Chart } from "../ui/chart.js";
import { Empty, Panel } from "../ui/panel.js";
import { PlainTable } from "../ui/table.js";
import { link, place, setParams } from "../url.js";
import { compareCommand, experimentSide, rowsOf, trialSide } from "./compare_sides.js";
import type { OneTrial, Side } from "./compare_sides.js";

const MOST = 8;
export const TINTS = ["accent", "best", "early", "good", "run", "bad", "pause", "lost"];
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [], [8, 4], [2, 3], [10, 3, 2, 3]];

// What differs stands out; what is the same everywhere can be left out.
function Table(props: { title: string; sides: Side[]; command: string | undefined }) {
  const { sides } = props;
  const rows = rowsOf(sides);
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
  command: string | undefined;
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
      dash: DASHES[i % DASHES.length]!, spanGaps: true,
      points: { // a line of one value is none
        show: lines[i]!.x.length < 2, size: 8, fill: () => colour(TINTS[i % TINTS.length]!),
      },
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
        form={lines.map((one) => `${one.name} ${one.x.length < 2}`).join()}
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

// The trials of each are kept: what is loaded again after a change is what has changed.
function useExperiments(ids: string[]) {
  const stores = useRef(new Map<string, TrialStore>()).current;
  useEffect(() => () => {
    for (const store of stores.values()) store.close();
    stores.clear();
  }, []);
  const watch = useChanges(null, (changes) => {
    if (changes.some((one) => ids.includes(`${one.namespace}/${one.experiment}`))) loaded.again();
  }, 2000);
  const loaded = useLoad(ids.join(), (abort) => Promise.all(ids.map(async (id): Promise<Loaded> => {
    const key = keyFromId(id);
    const experiment = await getExperiment(key, abort);
    const store = stores.get(id) ?? new TrialStore(key);
    stores.set(id, store);
    await store.refresh(experiment);
    return { experiment, data: store.data.peek() };
  })), watch);
  return loaded;
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
  const loaded = useExperiments(props.ids);
  const lines = useMemo(() => linesOf(loaded.value ?? []), [loaded.value]);
  if (!loaded.value) {
    return loaded.error ? <p class="problem">{loaded.error.message}</p> : <div aria-busy="true" />;
  }
  const experiments = loaded.value.map((one) => one.experiment);
  const metrics = [...new Set(experiments.map((one) => one.spec.objective.objectiveMetricName))];
  const command = compareCommand(props.ids.map((id) => {
    const key = keyFromId(id);
    return { key, name: key.name };
  }));
  const sides = experiments.map((one) => experimentSide(one, metrics));
  return (
    <>
      {loaded.error && <p class="problem">{loaded.error.message}</p>}
      {metrics.length > 1 && (
        <p class="banner">
          They have different objectives ({metrics.join(", ")}): their values do not compare.
        </p>
      )}
      {lines.length > 0 && (
        <Lines
          title="Best so far"
          steps
          lines={lines}
          x="trial"
          y={metrics.join(", ")}
          command={command}
        />
      )}
      <Table title="Side by side" sides={sides} command={command} />
    </>
  );
}

// ---- trials ------------------------------------------------------------------------------------

interface LoadedTrial extends OneTrial {
  line: Line;
}

async function loadTrial(id: string, abort: AbortSignal): Promise<LoadedTrial> {
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
  const line = { name: trial.metadata.name, x: curve?.x ?? [], y };
  return { key, number, experiment, trial, metric, line };
}

function Trials(props: { ids: string[] }) {
  const names = props.ids.map((id) => id.replace(/\/(\d+)$/, "-$1"));
  const watch = useChanges(null, (changes) => {
    if (changes.some((one) => names.includes(`${one.namespace}/${one.trial}`))) loaded.again();
  }, 2000);
  const loaded = useLoad(props.ids.join(), (abort) =>
    Promise.all(props.ids.map((id) => loadTrial(id, abort))), watch);
  if (!loaded.value) {
    return loaded.error ? <p class="problem">{loaded.error.message}</p> : <div aria-busy="true" />;
  }
  const command = compareCommand(loaded.value.map(({ key, trial }) => (
    { key, name: trial.metadata.name }
  )));
  const lines = loaded.value.map((one) => one.line).filter((line) => line.x.length > 0);
  const metric = [...new Set(loaded.value.map((one) => one.metric))].join(", ");
  return (
    <>
      {loaded.error && <p class="problem">{loaded.error.message}</p>}
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
