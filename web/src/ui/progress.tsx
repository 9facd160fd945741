// How far an experiment is: what became of its trials, as a bar and in numbers.
import { count } from "../format.js";
import type { TrialCounts } from "../state.js";
import { completed } from "../state.js";

export function Progress(props: { counts: TrialCounts; wide?: boolean }) {
  const { counts } = props;
  const max = counts.max;
  const parts: [string, string, number][] = [
    ["good", "succeeded", counts.succeeded],
    ["early", "stopped early", counts.earlyStopped],
    ["bad", "failed", counts.failed + counts.withoutMetrics],
    ["lost", "killed", counts.killed],
    ["run", "running", counts.running],
    ["wait", "pending", counts.pending],
  ];
  const total = Math.max(max ?? 0, parts.reduce((sum, part) => sum + part[2], 0), 1);
  const there = parts.filter((part) => part[2] > 0);
  const words = there.map(([, word, n]) => `${count(n)} ${word}`).join(", ") || "no trials yet";
  return (
    <span class={`progress ${props.wide ? "wide" : ""}`} title={words}>
      <span class="progress-bar" aria-hidden="true">
        {there.map(([tone, , n]) => (
          <span key={tone} class={tone} style={{ width: `${(n / total) * 100}%` }} />
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
