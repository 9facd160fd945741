// How far an experiment is: what became of its trials, as a bar and in numbers.
import { count } from "../format.js";
import type { TrialCounts } from "../state.js";
import { completed } from "../state.js";
import type { Fact } from "./facts.js";

function partsOf(counts: TrialCounts): [tone: string, word: string, n: number][] {
  return [
    ["good", "succeeded", counts.succeeded],
    ["early", "stopped early", counts.earlyStopped],
    ["bad", "failed", counts.failed],
    ["bad", "without metrics", counts.withoutMetrics],
    ["lost", "killed", counts.killed],
    ["run", "running", counts.running],
    ["wait", "pending", counts.pending],
  ];
}

// The same as a table says it.
export function progressFacts(counts: TrialCounts): Fact[] {
  return [
    {
      name: "Trials completed", value: count(completed(counts)),
      more: counts.max === undefined ? "" : `of ${count(counts.max)}`,
    },
    ...partsOf(counts).filter((part) => part[2] > 0).map(([, word, n]) => (
      { name: `Trials ${word}`, value: count(n), more: "" }
    )),
  ];
}

export function Progress(props: { counts: TrialCounts; wide?: boolean }) {
  const { counts } = props;
  const max = counts.max;
  const parts = partsOf(counts);
  const total = Math.max(max ?? 0, parts.reduce((sum, part) => sum + part[2], 0), 1);
  const there = parts.filter((part) => part[2] > 0);
  const words = there.map(([, word, n]) => `${count(n)} ${word}`).join(", ") || "no trials yet";
  return (
    <span class={`progress ${props.wide ? "wide" : ""}`} title={words}>
      <span class="progress-bar" aria-hidden="true">
        {there.map(([tone, word, n]) => (
          <span key={word} class={tone} style={{ width: `${(n / total) * 100}%` }} />
        ))}
      </span>
      <span class="progress-count">
        {count(completed(counts))}
        {max !== undefined && <small> / {count(max)}</small>}
      </span>
      <span class="unseen">{words}</span>
    </span>
  );
}
