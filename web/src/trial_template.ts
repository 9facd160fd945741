// The object that a trial runs: the experiment's template with this trial's values, as the program
// makes it (trial/trial_template.cc, trial/inactive_parameters.cc). What the program adds for an
// attempt (its folder of checkpoints, its machine) is not in it. Pure functions.
import type { Assignment } from "./api/records.js";

export interface TrialTemplate {
  trialParameters?: { name: string; reference: string }[];
  trialSpec?: Json;
}

export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

export interface Rendered {
  spec: Json;
  absent: string[]; // parameters of the experiment that this trial does not have
}

const REFERENCE = /\$\{trialParameters\.([^}]+)\}/g;

function field(of: Json | undefined, name: string): Json | undefined {
  return of !== null && typeof of === "object" && !Array.isArray(of) ? of[name] : undefined;
}

// ${trialSpec.Name}, Namespace, Kind, APIVersion, Labels[key], Annotations[key].
function metadata(
  reference: string, spec: Json, trial: { name: string; namespace: string },
): string | undefined {
  const key = /^\$\{trialSpec\.(.+)\}$/.exec(reference)?.[1];
  if (key === undefined) return undefined;
  if (key === "Name") return trial.name;
  if (key === "Namespace") return trial.namespace;
  const indexed = /^(Labels|Annotations)\[(.+)\]$/.exec(key);
  const found = key === "Kind" ? field(spec, "kind")
    : key === "APIVersion" ? field(spec, "apiVersion")
      : indexed ? field(field(field(spec, "metadata"), indexed[1]!.toLowerCase()), indexed[2]!)
        : undefined;
  return typeof found === "string" ? found : undefined;
}

// Whether the text is one reference without a value and nothing else.
function isWhole(text: Json | undefined, unbound: Set<string>): boolean {
  const name = typeof text === "string"
    ? /^\$\{trialParameters\.([^}]+)\}$/.exec(text)?.[1] : undefined;
  return name !== undefined && unbound.has(name);
}

function isOption(item: Json, unbound: Set<string>): boolean {
  const value = typeof item === "string" ? /^-[^=]*=([^]*)$/.exec(item)?.[1] : undefined;
  return isWhole(value, unbound);
}

// A list without what only names a parameter that does not exist: --x=VALUE, --x VALUE, VALUE, and
// the variables of an environment.
function kept(list: Json[], unbound: Set<string>, env: boolean): Json[] {
  const rest: Json[] = [];
  for (const item of list) {
    if (env && isWhole(field(item, "value"), unbound)) continue;
    if (isOption(item, unbound)) continue;
    const last = rest.at(-1);
    if (isWhole(item, unbound) && typeof last === "string" && /^-[^= $]*$/.test(last) &&
        !last.endsWith("-")) {
      rest.pop();
      continue;
    }
    rest.push(item);
  }
  return rest;
}

// The template without what names only these of its parameters.
export function withoutParameters(spec: Json, names: string[]): Json {
  const unbound = new Set(names);
  const rest = (value: Json, env: boolean): Json => {
    if (Array.isArray(value)) return kept(value, unbound, env).map((item) => rest(item, false));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, rest(item, name === "env")]),
    );
  };
  return rest(spec, false);
}

export function rendered(
  template: TrialTemplate,
  trial: { name: string; namespace: string; assignments: Assignment[] },
  parameters: { name: string }[],
): Rendered {
  const source = template.trialSpec ?? null;
  const values = new Map(trial.assignments.map((one) => [one.name, one.value]));
  const absent = parameters.map((one) => one.name).filter((name) => !values.has(name));
  const bound = new Map<string, string>();
  const unbound = new Set<string>();
  for (const { name, reference } of template.trialParameters ?? []) {
    const value = metadata(reference, source, trial) ?? values.get(reference);
    if (value !== undefined) bound.set(name, value);
    else if (absent.includes(reference)) unbound.add(name);
  }
  // What a value brings along is never looked at again; what nothing binds stays as it is written.
  const filled = (value: Json): Json => {
    if (typeof value === "string") {
      return value.replace(REFERENCE, (all, name: string) => bound.get(name) ?? all);
    }
    if (Array.isArray(value)) return value.map(filled);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, filled(item)]));
  };
  return { spec: filled(withoutParameters(source, [...unbound])), absent };
}
