// Prints what JSON can hold as YAML 1.1, as Katib's files are written; and the lines by which two
// texts differ. Pure functions. YAML is read by the server alone (POST api/v1/parse).
import type { Experiment } from "./api/records.js";

// What its author wrote, without what Shirabe has added.
export function specificationOf(experiment: Experiment): string {
  const { name, namespace, labels, annotations } = experiment.metadata;
  return toYaml({
    apiVersion: "kubeflow.org/v1beta1",
    kind: "Experiment",
    metadata: { name, namespace, labels, annotations },
    spec: experiment.spec,
  });
}

// Words and numbers that a reader would not take for text.
const NOT_TEXT = /^(?:[-+]?[0-9.].*|true|false|yes|no|on|off|y|n|null|~|\.nan|[-+]?\.inf)$/i;
const PLAIN = /^[A-Za-z0-9_./$(){}%^*+=@ -]+$/;

// What begins as something else than a plain text does, or has blanks around it.
const NOT_PLAIN = /^[{}*%@=\s]|^-(?:\s|$)|^---|\s$/;

export function scalar(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value);
  const plain = PLAIN.test(value) && !NOT_TEXT.test(value) && !NOT_PLAIN.test(value);
  return plain ? value : JSON.stringify(value);
}

function isFlat(value: unknown): boolean {
  return value === null || typeof value !== "object";
}

function isEmpty(value: object): boolean {
  return Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0;
}

export function toYaml(value: unknown, indent = 0): string {
  const pad = "  ".repeat(indent);
  if (isFlat(value)) return `${pad}${scalar(value)}\n`;
  if (Array.isArray(value)) {
    return value
      .map((item) => {
        if (isFlat(item)) return `${pad}- ${blockOr(item, indent + 1)}\n`;
        if (isEmpty(item as object)) return `${pad}- ${Array.isArray(item) ? "[]" : "{}"}\n`;
        return `${pad}- ${toYaml(item, indent + 1).slice(pad.length + 2)}`;
      })
      .join("");
  }
  return Object.entries(value as object)
    .filter(([, item]) => item !== undefined)
    .map(([name, item]) => {
      const key = `${pad}${scalar(name)}:`;
      if (isFlat(item)) return `${key} ${blockOr(item, indent + 1)}\n`;
      if (isEmpty(item as object)) return `${key} ${Array.isArray(item) ? "[]" : "{}"}\n`;
      return `${key}\n${toYaml(item, indent + 1)}`;
    })
    .join("");
}

// A text of several lines as a block, where that gives back the same text.
function blockOr(value: unknown, indent: number): string {
  const fits =
    typeof value === "string" && value.includes("\n") &&
    !/^\s|[^\S\n]\n|[^\n]$|\n\n$/.test(value) &&
    !/[^\n\t\x20-\x7e\u00a0-\ud7ff]/.test(value);
  if (!fits) return scalar(value);
  const pad = "  ".repeat(indent);
  return `|\n${(value as string).replace(/\n$/, "").replace(/^(?=.)/gm, pad)}`;
}

// ---- differences -------------------------------------------------------------------------------

export interface DiffLine {
  kind: "same" | "add" | "del";
  text: string;
}

// By the longest common subsequence, after what both begin and end with. Texts of more than 4,000
// lines in between are shown as replaced as a whole.
export function diffLines(before: string, after: string): DiffLine[] {
  const a = before.split("\n");
  const b = after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) ++head;
  let tail = 0;
  while (
    tail < a.length - head && tail < b.length - head &&
    a[a.length - 1 - tail] === b[b.length - 1 - tail]
  ) ++tail;
  const same = (text: string): DiffLine => ({ kind: "same", text });
  const middle = diffMiddle(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  return [...a.slice(0, head).map(same), ...middle, ...a.slice(a.length - tail).map(same)];
}

function diffMiddle(a: string[], b: string[]): DiffLine[] {
  const del = (text: string): DiffLine => ({ kind: "del", text });
  const add = (text: string): DiffLine => ({ kind: "add", text });
  if (a.length * b.length > 4000 * 4000) return [...a.map(del), ...b.map(add)];
  const width = b.length + 1;
  const longest = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; --i) {
    for (let j = b.length - 1; j >= 0; --j) {
      longest[i * width + j] = a[i] === b[j]
        ? longest[(i + 1) * width + j + 1]! + 1
        : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!);
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: "same", text: a[i]! });
      ++i;
      ++j;
    } else if (
      j >= b.length ||
      (i < a.length && longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!)
    ) {
      lines.push(del(a[i++]!));
    } else {
      lines.push(add(b[j++]!));
    }
  }
  return lines;
}
