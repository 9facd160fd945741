// Why attempts end, in words.
import type { Attempt } from "./api/records.js";
import type { Shape, Tone } from "./state.js";

const CAUSES: Record<string, [Tone | "bolt", Shape, string]> = {
  completed: ["good", "check", "completed"],
  "early-stopped": ["early", "half", "stopped early"],
  yielded: ["bolt", "bolt", "saved and gave way"],
  "preempted-scheduler": ["bolt", "bolt", "preempted by the scheduler"],
  "preempted-eviction": ["bolt", "bolt", "evicted"],
  "preempted-node": ["bolt", "bolt", "its node went away"],
  "preempted-spot": ["bolt", "bolt", "its spot machine was taken back"],
  suspended: ["pause", "bars", "suspended"],
  "never-ran": ["lost", "ring", "never ran"],
  infrastructure: ["bolt", "slash", "infrastructure"],
  oom: ["bad", "cross", "out of memory"],
  "app-error": ["bad", "cross", "the program failed"],
  user: ["lost", "slash", "ended by a user"],
  "experiment-ended": ["lost", "slash", "the experiment ended"],
  unknown: ["lost", "slash", "unknown"],
};

export interface CauseLook {
  tone: Tone | "bolt";
  shape: Shape;
  word: string;
}

export function causeOf(attempt: Attempt): CauseLook {
  return lookOfCause(attempt.status.state, attempt.cause);
}

export function lookOfCause(state: string, cause: string | null): CauseLook {
  if (state === "running") return { tone: "run", shape: "play", word: "running" };
  if (cause === null) return { tone: "wait", shape: "ring", word: "queued" };
  const [tone, shape, word] = CAUSES[cause] ?? ["lost", "slash", cause];
  return { tone, shape, word };
}

export function exitWords(attempt: Attempt): string {
  if (attempt.status.signal) return `signal ${attempt.status.signal}`;
  return attempt.exitCode === null ? "–" : `exit ${attempt.exitCode}`;
}
