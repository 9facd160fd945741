// What a change of one field of a new experiment means for others. Pure functions, which change the
// copy that they are given.
import type { Variant } from "../api/experiments.js";
import type { Experiment, Finding, Parameter } from "../api/records.js";
import { withoutParameters } from "../trial_template.js";
import type { Json, TrialTemplate } from "../trial_template.js";

type Spec = Experiment["spec"];
export type Settings = { name: string; value: string }[];

export function templateOf(spec: Spec): TrialTemplate | undefined {
  return spec.trialTemplate as TrialTemplate | undefined;
}

export interface Container {
  name?: string;
  image?: string;
  command?: string[];
  args?: string[];
}

// The container that computes: of that name, or the first one that there is.
export function containerOf(spec: Spec): Container | undefined {
  const found: Container[] = [];
  const visit = (value: Json | undefined): void => {
    if (value === null || typeof value !== "object") return;
    for (const [key, field] of Object.entries(value)) {
      if (key === "containers" && Array.isArray(field)) found.push(...field as Container[]);
      else visit(field);
    }
  };
  visit(templateOf(spec)?.trialSpec);
  const primary = (spec.trialTemplate as { primaryContainerName?: string } | undefined)
    ?.primaryContainerName;
  return found.find((one) => one.name === primary) ?? found[0];
}

// What the server could not read as a number is not in the experiment that it gives back; here it
// gets its place again, as the text that it is, so that its field shows it.
export function withUnread(experiment: Experiment | undefined, findings: Finding[]): void {
  for (const { field, message } of findings) {
    const found = /^must be an? (?:number|integer), not (?:"(.*)"|the number (.*))$/s.exec(message);
    const path = field.split(/[.[\]]+/).filter((step) => step !== "");
    const name = path.pop();
    if (!found || name === undefined) continue;
    type Inner = Record<string, unknown> | undefined;
    const around = path.reduce<Inner>((one, step) => one?.[step] as Inner,
      experiment as unknown as Inner);
    if (around && around[name] === undefined) around[name] = found[1] ?? found[2];
  }
}

// ---- parameters --------------------------------------------------------------------------------

const MADE_UP = /^parameter-\d+$/; // a name that the form gave
const OPTION = /^--?[\w-]+=\$\{trialParameters\.[^}]+\}$/;

export function addParameter(spec: Spec): void {
  const taken = new Set((spec.parameters ?? []).map((one) => one.name));
  let n = (spec.parameters?.length ?? 0) + 1;
  while (taken.has(`parameter-${n}`)) ++n;
  const name = `parameter-${n}`;
  spec.parameters = [...(spec.parameters ?? []), {
    name, parameterType: "double", feasibleSpace: { min: "0", max: "1" },
  }];
  const template = templateOf(spec);
  const container = containerOf(spec);
  const words = [container?.args, container?.command].find((list) =>
    list?.some((word) => OPTION.test(word)));
  // Where the command has such options it gets one more; elsewhere the program reads the variable.
  if (!template || !words) return;
  const last = words.findLastIndex((word) => OPTION.test(word));
  const dashes = words[last]!.startsWith("--") ? "--" : "-";
  words.splice(last + 1, 0, `${dashes}${name}=\${trialParameters.${name}}`);
  template.trialParameters = [...(template.trialParameters ?? []), { name, reference: name }];
}

// In the rules of spec.shirabe.space, where a parameter's name is a key or stands under "parameter".
function renameKeys(rules: unknown, from: string, to: string): unknown {
  if (Array.isArray(rules)) return rules.map((one) => renameKeys(one, from, to));
  if (rules === null || typeof rules !== "object") return rules;
  return Object.fromEntries(Object.entries(rules).map(([key, value]) => {
    if (key === "parameter" && value === from) return [key, to];
    return [key === from ? to : key, renameKeys(value, from, to)];
  }));
}

function eachText(value: Json, change: (text: string) => string): Json {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((one) => eachText(one, change));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([k, one]) => [k, eachText(one, change)]));
}

export function renameParameter(spec: Spec, at: number, to: string): void {
  const parameter = spec.parameters![at]!;
  const from = parameter.name;
  parameter.name = to;
  const template = templateOf(spec);
  for (const one of template?.trialParameters ?? []) {
    if (one.reference === from) one.reference = to;
  }
  const shirabe = spec.shirabe as Record<string, unknown> | undefined;
  if (shirabe?.["space"] !== undefined) shirabe["space"] = renameKeys(shirabe["space"], from, to);
  // What the form has made up follows: its option has no program that knows it yet.
  const own = template?.trialParameters?.find((one) => one.name === from);
  if (!template?.trialSpec || !own || !MADE_UP.test(from) || !/^[\w-]+$/.test(to)) return;
  own.name = to;
  const reference = `\${trialParameters.${from}}`;
  template.trialSpec = eachText(template.trialSpec, (text) => text
    .replace(new RegExp(`^(--?)${from}=`), `$1${to}=`)
    .replaceAll(reference, `\${trialParameters.${to}}`));
}

export function removeParameter(spec: Spec, at: number): void {
  const [gone] = spec.parameters!.splice(at, 1);
  const template = templateOf(spec);
  if (!gone || !template?.trialParameters) return;
  const bound = template.trialParameters.filter((one) => one.reference === gone.name);
  template.trialParameters = template.trialParameters.filter((one) => !bound.includes(one));
  if (template.trialSpec === undefined) return;
  template.trialSpec = withoutParameters(template.trialSpec, bound.map((one) => one.name));
}

// Another type keeps what of the space fits it.
export function withType(parameter: Parameter, type: Parameter["parameterType"]): Parameter {
  const { feasibleSpace: space = {} } = parameter;
  const listed = (one: string) => one === "discrete" || one === "categorical";
  if (listed(type) === listed(parameter.parameterType)) {
    return { ...parameter, parameterType: type };
  }
  return {
    ...parameter, parameterType: type,
    feasibleSpace: listed(type) ? { list: space.list ?? ["1", "2"] } : { min: "0", max: "1" },
  };
}

// ---- algorithms --------------------------------------------------------------------------------

// The settings that another algorithm, or rule, knows as well.
export function keptSettings(settings: Settings, variant: Variant | undefined): Settings {
  return settings.filter((one) => variant?.settings.some((known) => known.name === one.name));
}

export function withSetting(settings: Settings, name: string, value: string): Settings {
  if (value.trim() === "") return settings.filter((one) => one.name !== name);
  const next = { name, value: value.trim() };
  return settings.some((one) => one.name === name)
    ? settings.map((one) => (one.name === name ? next : one)) : [...settings, next];
}
