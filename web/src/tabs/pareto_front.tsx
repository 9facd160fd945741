// The front as a table, with its hypervolume; and the one of it that is best by weights.
import { useMemo } from "preact/hooks";
import type { TrialColumns } from "../api/columns.js";
import type { Experiment, Front, FrontTrial } from "../api/records.js";
import { numberOf } from "../api/records.js";
import { argumentsOf, count, plural, shellWord, short, word } from "../format.js";
import type { Objective } from "../objectives.js";
import { constraintWords, constraintsOf, objectivesOf } from "../objectives.js";
import type { Shared } from "../pages/context.js";
import { namespaceFlag, toggleTrial, useShared } from "../pages/context.js";
import { Standing, lossesOf, pickByWeights } from "../pareto.js";
import { trialNumberIn } from "../state.js";
import { copy } from "../ui/dialog.js";
import { Grid } from "../ui/grid.js";
import { Command, Empty, Panel } from "../ui/panel.js";
import { cellOf, firstColumns, gridColumn, nameOf, orderOf } from "../ui/trial_columns.js";
import { go, link, param, setParams } from "../url.js";
import type { Scene } from "./pareto_chart.js";

export function numberIn(trial: FrontTrial): number {
  return trialNumberIn(trial.trialName);
}

function frontIn(experiment: Experiment): Front {
  return experiment.status?.shirabe?.front ?? {};
}

// ---- best by weights ----------------------------------------------------------------------------

const MOST = 5; // of a weight

// One an objective, from the address; all alike where it says nothing.
function weightsOf(objectives: Objective[]): number[] {
  const given = param("w").split("_");
  return objectives.map((_, i) => {
    const weight = param("w") === "" ? 1 : Number(given[i] ?? 0);
    return weight >= 0 && weight <= MOST ? weight : 1;
  });
}

export interface Picked {
  weights: number[];
  trial: FrontTrial | null;
}

// A trial of the front as the server lists the first hundred.
function memberOf(experiment: Experiment, table: TrialColumns, row: number): FrontTrial {
  return {
    trialName: `${experiment.metadata.name}-${table.trial(row)}`,
    values: objectivesOf(experiment).map(({ column }) => table.values(column)[row]!),
    parameterAssignments: (experiment.spec.parameters ?? []).flatMap(({ name }) => {
      const value = table.column(`param.${name}`)?.at(row) ?? null;
      return value === null ? [] : [{ name, value: String(value) }];
    }),
  };
}

export function pickedOf(experiment: Experiment, table: TrialColumns, front: number[]): Picked {
  const objectives = objectivesOf(experiment);
  const weights = weightsOf(objectives);
  const row = pickByWeights(lossesOf(table, objectives), front, weights);
  return { weights, trial: row < 0 ? null : memberOf(experiment, table, row) };
}

function weightCommand({ key, experiment }: Shared, weights: number[]): string {
  const flags = objectivesOf(experiment).flatMap(({ metric }, i) =>
    (weights[i]! > 0 ? [` --weights ${shellWord(`${metric}=${weights[i]}`)}`] : []));
  return `shirabe best ${shellWord(key.name)}${namespaceFlag(key)}${flags.join("")}`;
}

function Weights(props: { objectives: Objective[]; weights: number[] }) {
  const { objectives, weights } = props;
  const set = (at: number, weight: number) =>
    setParams({ w: weights.map((one, i) => (i === at ? weight : one)).join("_") });
  return (
    <div class="weights">
      {objectives.map(({ metric }, i) => (
        <label key={metric}>
          <span>{metric}</span>
          <input
            type="range"
            min={0}
            max={MOST}
            step={0.5}
            value={weights[i]}
            onInput={(event) => set(i, Number(event.currentTarget.value))}
          />
          <output>{weights[i]}</output>
        </label>
      ))}
    </div>
  );
}

function PickedTrial(props: { shared: Shared; trial: FrontTrial }) {
  const { shared: { key, experiment, selected }, trial } = props;
  const number = numberIn(trial);
  const assignments = trial.parameterAssignments ?? [];
  const args = argumentsOf(assignments);
  return (
    <>
      <p>
        <b>
          <a href={link(["t", key.ns, key.name, number])}>Trial {number}</a>
        </b>
      </p>
      <dl class="pairs">
        {objectivesOf(experiment).map(({ metric }, i) => (
          <>
            <dt>{metric}</dt>
            <dd class="mono"><b>{short(numberOf(trial.values[i]))}</b></dd>
          </>
        ))}
        {assignments.map(({ name, value }) => (
          <>
            <dt>{name}</dt>
            <dd class="mono">{word(value)}</dd>
          </>
        ))}
      </dl>
      <p class="tools">
        <button onClick={() => void copy(args)}>Copy as arguments</button>
        <button aria-pressed={selected.has(number)} onClick={() => toggleTrial(number)}>
          {selected.has(number) ? "Selected" : "Select"}
        </button>
      </p>
    </>
  );
}

export function BestByWeights(props: { picked: Picked; class?: string }) {
  const shared = useShared();
  const { experiment } = shared;
  const { weights, trial } = props.picked;
  const objectives = objectivesOf(experiment);
  const command = weightCommand(shared, weights);
  const some = weights.some((one) => one > 0);
  const tableOf = trial && (() => ({
    columns: ["", "value"],
    rows: [
      ["trial", numberIn(trial)],
      ...objectives.map((one, i) => [one.metric, numberOf(trial.values[i])]),
      ...(trial.parameterAssignments ?? []).map((one) => [one.name, word(one.value)]),
    ],
  }));
  return (
    <Panel
      title="Best by weights"
      class={props.class ?? ""}
      command={some ? command : undefined}
      table={tableOf ?? undefined}
    >
      <p class="hint">
        Each objective counts as a part of its range over the front.
      </p>
      <Weights objectives={objectives} weights={weights} />
      <div aria-live="polite">
        {!some ? <p>Give one objective at least a weight above 0.</p>
          : trial ? <PickedTrial shared={shared} trial={trial} />
            : <p class="dim">No trial is on the front yet.</p>}
      </div>
      {some && <Command text={command} />}
    </Panel>
  );
}

// ---- the front ----------------------------------------------------------------------------------

function hypervolumeWords(front: Front): string {
  if (front.hypervolume !== undefined) return short(front.hypervolume);
  return (front.size ?? 0) === 0 ? "–" : "not computed: too many trials";
}

function Facts(props: { experiment: Experiment; size: number }) {
  const { experiment } = props;
  const front = frontIn(experiment);
  const reference = objectivesOf(experiment).map((one, i) =>
    `${one.metric} ${short(numberOf(front.reference?.[i]))} ` +
    `(${Number.isNaN(one.reference) ? "the worst so far" : "as specified"})`);
  const constraints = constraintsOf(experiment);
  return (
    <dl class="facts">
      <div class="fact">
        <dt>On the front</dt>
        <dd>
          {plural(props.size, "trial")}
          <small>none is better than another in every objective</small>
        </dd>
      </div>
      <div class="fact">
        <dt>Hypervolume</dt>
        <dd>
          {hypervolumeWords(front)}
          {front.reference && <small>measured from {reference.join(", ")}</small>}
        </dd>
      </div>
      {constraints.length > 0 && (
        <div class="fact">
          <dt>Constraints</dt>
          <dd>
            {count(constraints.length)}
            <small>{constraints.map(constraintWords).join(", ")}</small>
          </dd>
        </div>
      )}
    </dl>
  );
}

const ROW = 36; // pixels
const SHOWN = 12; // rows; of more the table scrolls

export function FrontPanel(props: { scene: Scene }) {
  const { key, experiment, data, rows, selected } = useShared();
  const { standings: { of, front }, objectives, picked } = props.scene;
  const { table } = data!;
  const sort = param("fsort") || (objectives[0]!.maximize ? "~objective" : "objective");
  const order = useMemo(
    () => orderOf(table, rows.filter((row) => of[row] === Standing.Front), sort),
    [of, rows, sort],
  );
  const at = (row: number) => order[row]!;
  const names = [
    ...objectives.map((one) => one.column),
    ...constraintsOf(experiment).map((one) => one.column),
    ...table.columns.map((one) => one.name).filter((name) => name.startsWith("param.")),
  ];
  const shown = [...new Set(names)].flatMap((name) => table.column(name) ?? []);
  const trialRows = { key, table, experiment, at };
  const trialAt = (row: number) => table.trial(at(row));
  const tableOf = () => ({
    columns: ["trial", ...shown.map((one) => nameOf(one.name, experiment))],
    rows: Array.from(order, (row) => [
      table.trial(row), ...shown.map((column) => cellOf(column, row)),
    ]),
  });
  return (
    <Panel
      title="The front"
      shown={order.length < front.length
        ? `${count(order.length)} of ${plural(front.length, "trial")} shown` : ""}
      command={`shirabe best ${shellWord(key.name)}${namespaceFlag(key)} -o json`}
      table={tableOf}
    >
      <Facts experiment={experiment} size={front.length} />
      <div
        class="front-grid"
        style={{ height: `${Math.min(SHOWN, Math.max(3, order.length)) * ROW + 56}px` }}
      >
        <Grid
          label="The front"
          rows={order.length}
          rowHeight={ROW}
          columns={[
            ...firstColumns(trialRows, selected, { trial: picked, word: "picked" }),
            ...shown.map((column) => gridColumn(column, trialRows)),
          ]}
          sort={sort}
          onSort={(next) => setParams({ fsort: next })}
          onOpen={(row) => go(link(["t", key.ns, key.name, trialAt(row)]))}
          isSelected={(row) => selected.has(trialAt(row))}
          onSelect={(row) => toggleTrial(trialAt(row))}
          empty={<Empty title={front.length > 0 ? "No trial of the front meets this filter"
            : "No trial is on the front yet"} />}
        />
      </div>
    </Panel>
  );
}
