// Which parameters matter, and what brought the gain; with bands, and "cannot be told yet" where
// that is the truth.
import type { ComponentChildren } from "preact";
import type { Ablation, Basis, Estimate, Importance } from "../api/analysis.js";
import { readAblation, readImportance } from "../api/analysis.js";
import { count, percent, plural, short, word } from "../format.js";
import { useLoad } from "../load.js";
import { isFiltered, namespaceFlag, useShared } from "../pages/context.js";
import { finishedTrials } from "../state.js";
import { Empty, Panel } from "../ui/panel.js";
import { param, setParams } from "../url.js";

function basisWords(basis: Basis): string {
  return [
    `${plural(basis.results, "result")} of ended trials`,
    basis.leftOut > 0 && `${count(basis.leftOut)} more than the model takes`,
    basis.failed > 0 && `${count(basis.failed)} without a result left out`,
    basis.explained !== undefined && (basis.explained > 0
      ? `the model explains ${percent(basis.explained)} of the variance`
      : "the model explains none of the variance"),
  ].filter(Boolean).join("; ");
}

// A bar with the band in which it lies with 90 % probability.
function Bar(props: { estimate: Estimate; inner?: Estimate | undefined; most: number }) {
  const { estimate, inner, most } = props;
  const at = (value: number) => `${Math.max(0, Math.min(100, (value / most) * 100))}%`;
  return (
    <span class="bar-box" aria-hidden="true">
      <span class="bar-value" style={{ width: at(estimate.value) }} />
      {inner && <span class="bar-inner" style={{ width: at(inner.value) }} />}
      <span
        class="bar-band"
        style={{
          left: at(estimate.low), width: `calc(${at(estimate.high)} - ${at(estimate.low)})`,
        }}
      />
    </span>
  );
}

function band(estimate: Estimate): string {
  return `${percent(estimate.low)} to ${percent(estimate.high)}`;
}

function ImportanceBars(props: { importance: Importance }) {
  const { parameters } = props.importance;
  const most = Math.max(
    0.05, ...parameters.map((one) => one.total?.high ?? one.share ?? 0).filter(Number.isFinite),
  );
  return (
    <div class="bars-table" role="table" aria-label="Importance of the parameters">
      {parameters.map((one) => {
        const estimate = one.total ??
          { value: one.share ?? 0, low: one.share ?? 0, high: one.share ?? 0 };
        const unknown = one.verdict === "too few trials to tell";
        return (
          <div role="row" class={`bar-row ${unknown ? "unknown" : ""}`} key={one.parameter}>
            <span role="rowheader">{one.parameter}</span>
            <span role="cell">
              <Bar estimate={estimate} inner={one.firstOrder} most={most} />
              <span class="unseen">{percent(estimate.value)}</span>
            </span>
            <span role="cell">
              {unknown ? "cannot be told yet" : percent(estimate.value)}
              <small>{one.total ? ` ${band(one.total)}` : ""}</small>
            </span>
          </div>
        );
      })}
    </div>
  );
}

// Models are made of all trials: the server makes them, and knows no filter.
function OfAllTrials() {
  return isFiltered() ? (
    <p class="hint">Of all trials: the filter does not change this.</p>
  ) : null;
}

function useDone(): string {
  const { key, experiment } = useShared();
  return `${key.ns}/${key.name}/${finishedTrials(experiment)}`;
}

function Problem(props: { error: Error | undefined }): ComponentChildren {
  return props.error ? <p class="dim">{props.error.message}</p> : <p class="dim">Computing…</p>;
}

export function ImportancePanel() {
  const { key } = useShared();
  const method = param("importance") || "gp";
  const loaded = useLoad(`${useDone()}/${method}`, (abort) => readImportance(key, method, abort));
  const found = loaded.value;
  const few = found?.basis.tooFew;
  const there = found && !few ? found : undefined; // without it the menu has nothing to give
  return (
    <Panel
      title="Which parameters matter"
      class="half"
      image={there !== undefined}
      shown={there && basisWords(there.basis)}
      command={there && `shirabe importance ${key.name}${namespaceFlag(key)}` +
        (method === "gp" ? "" : ` --method ${method}`)}
      summary={found?.parameters.map((one) =>
        `${one.parameter} ${percent(one.total?.value ?? one.share ?? NaN)}`).join(", ")}
      tools={
        <label>
          Method
          <select
            value={method}
            onChange={(event) => setParams({
              importance: event.currentTarget.value === "gp" ? "" : event.currentTarget.value,
            })}
          >
            <option value="gp">share of the variance</option>
            <option value="ped">what the best tenth has</option>
          </select>
        </label>
      }
      table={there && (() => ({
        columns: ["parameter", "share", "low", "high", "by itself", "verdict"],
        rows: there.parameters.map((one) => [
          one.parameter, short(one.total?.value ?? one.share), short(one.total?.low),
          short(one.total?.high), short(one.firstOrder?.value), one.verdict ?? "",
        ]),
      }))}
    >
      {!found ? <Problem error={loaded.error} /> : few ? (
        <Empty title="Too few trials to tell"><p>{few}</p></Empty>
      ) : (
        <>
          <OfAllTrials />
          <ImportanceBars importance={found} />
          <p class="hint">
            {method === "gp"
              ? "Bar: share of the objective's variance, also together with others; darker: by " +
                "itself; whisker: where it lies with 90 % probability."
              : `How far the best ${found.bestTrials ?? ""} trials differ from all. It says what ` +
                "good trials have in common, not how much a parameter changes the objective."}
          </p>
        </>
      )}
    </Panel>
  );
}

// Numbers in as many digits as one can take in.
function value(text: string): string {
  return text.trim() === "" || Number.isNaN(Number(text)) ? word(text)
    : short(Number(Number(text).toPrecision(3)));
}

function Steps(props: { ablation: Ablation }) {
  const { steps } = props.ablation;
  const total = steps.reduce((sum, one) => sum + Math.max(0, one.gain.value), 0) || 1;
  const most = Math.max(...steps.map((one) => one.gain.high), 1e-12);
  return (
    <div class="bars-table" role="table" aria-label="What brought the gain">
      {steps.map((one) => (
        <div role="row" class="bar-row" key={one.parameter}>
          <span role="rowheader">
            {one.parameter}
            <small class="pre"> {value(one.fromValue)} → {value(one.toValue)}</small>
          </span>
          <span role="cell">
            <Bar estimate={one.gain} most={most} />
            <span class="unseen">{short(one.gain.value)}</span>
          </span>
          <span role="cell">
            {percent(Math.max(0, one.gain.value) / total)}
            <small> {short(one.gain.value)}</small>
          </span>
        </div>
      ))}
    </div>
  );
}

export function AblationPanel() {
  const { key } = useShared();
  const loaded = useLoad(`${useDone()}/ablation`, (abort) => readAblation(key, abort));
  const found = loaded.value;
  const few = found?.basis.tooFew;
  const there = found && !few && found.steps.length > 0 ? found : undefined;
  return (
    <Panel
      title="What brought the gain"
      class="half"
      image={there !== undefined}
      command={there && `shirabe importance ${key.name}${namespaceFlag(key)} --ablation`}
      shown={found?.fromTrial ? `from trial ${found.fromTrial} to trial ${found.toTrial}` : ""}
      summary={found?.steps.map((one) => `${one.parameter} ${short(one.gain.value)}`).join(", ")}
      table={there && (() => ({
        columns: ["parameter", "from", "to", "gain", "low", "high", "objective after it"],
        rows: there.steps.map((one) => [
          one.parameter, word(one.fromValue), word(one.toValue), short(one.gain.value),
          short(one.gain.low), short(one.gain.high), short(one.objective.value),
        ]),
      }))}
    >
      {!found ? <Problem error={loaded.error} /> : few ? (
        <Empty title="Too few trials to tell"><p>{few}</p></Empty>
      ) : found.steps.length === 0 ? (
        <p class="dim">The two trials do not differ.</p>
      ) : (
        <>
          <OfAllTrials />
          <Steps ablation={found} />
          <p class="hint">
            From the median trial to the best one, one parameter after the other, the largest gain
            first, as the model predicts it.
          </p>
        </>
      )}
    </Panel>
  );
}
