// Changes fields of a YAML text in place, so that its comments, its order and its quotes stay. It
// knows what experiments are written in: block mappings and lists, values on one line, blocks of
// text. `edited` gives null for a text with anything else in it; nothing is guessed. Pure
// functions.
import { scalar, toYaml } from "./yaml.js";

type Path = (string | number)[];

type Node =
  | { kind: "map"; column: number; end: number; entries: Entry[] }
  | { kind: "list"; column: number; end: number; items: Item[] }
  | { kind: "value"; end: number; line: number; from: number; to: number; block?: boolean };

interface Entry {
  key: string;
  line: number; // of its key
  after: number; // the column behind its colon
  node: Node;
}

interface Item {
  line: number; // of its dash
  node: Node;
}

class Unsupported extends Error {}

const KEY = /^("(?:[^"\\]*)"|'[^']*'|[A-Za-z0-9_.$/-][A-Za-z0-9_.$/ -]*?)\s*:(?=\s|$)/;
const DASH = /^-(?:\s+|$)/;

// ---- reading -----------------------------------------------------------------------------------

function indentOf(line: string): number {
  return /^ */.exec(line)![0].length;
}

class Reader {
  constructor(readonly lines: string[]) {}

  // The next line from `at` on that says something; lines.length if there is none.
  next(at: number): number {
    while (at < this.lines.length && /^\s*(?:#.*)?$/.test(this.lines[at]!)) ++at;
    return at;
  }

  indent(at: number): number {
    return at < this.lines.length ? indentOf(this.lines[at]!) : -1;
  }

  node(line: number, column: number): Node {
    const text = this.lines[line]!.slice(column);
    if (DASH.test(text)) return this.list(line, column);
    if (KEY.test(text)) return this.map(line, column);
    return this.value(line, column, column - 1); // an item's text begins behind its dash
  }

  map(line: number, column: number): Node {
    const entries: Entry[] = [];
    let at = line;
    let end = line;
    while (at < this.lines.length && (at === line || this.indent(at) === column)) {
      const match = KEY.exec(this.lines[at]!.slice(column));
      if (!match) {
        if (DASH.test(this.lines[at]!.slice(column))) break; // of the list around it
        throw new Unsupported();
      }
      const key = match[1]!.replace(/^(["'])(.*)\1$/, "$2");
      if (entries.some((one) => one.key === key)) throw new Unsupported();
      const after = column + match[0].length;
      const node = this.below(at, after, column, true);
      entries.push({ key, line: at, after, node });
      end = node.end;
      at = this.next(end);
    }
    if (this.indent(at) > column) throw new Unsupported();
    return { kind: "map", column, end, entries };
  }

  list(line: number, column: number): Node {
    const items: Item[] = [];
    let at = line;
    let end = line;
    while (at < this.lines.length && (at === line || this.indent(at) === column)) {
      const match = DASH.exec(this.lines[at]!.slice(column));
      if (!match) break; // a key after a list that is as far to the left as the key of the list
      const from = column + match[0].length;
      const rest = this.lines[at]!.slice(from);
      const node = rest === "" || rest.startsWith("#")
        ? this.below(at, from, column, false)
        : /^[|>]/.test(rest) ? this.value(at, from, column) : this.node(at, from);
      items.push({ line: at, node });
      end = node.end;
      at = this.next(end);
    }
    if (this.indent(at) > column) throw new Unsupported();
    return { kind: "list", column, end, items };
  }

  // What stands behind a key, or on the lines after it.
  below(line: number, after: number, column: number, keyed: boolean): Node {
    const rest = this.lines[line]!.slice(after);
    if (!/^\s*(?:#.*)?$/.test(rest)) {
      return this.value(line, after + /^\s*/.exec(rest)![0].length, column);
    }
    const at = this.next(line + 1);
    const indent = this.indent(at);
    if (indent > column) return this.node(at, indent);
    if (keyed && indent === column && DASH.test(this.lines[at]!.slice(column))) {
      return this.list(at, indent);
    }
    return { kind: "value", line, from: after, to: after, end: line + 1 };
  }

  value(line: number, from: number, column: number): Node {
    const text = this.lines[line]!.slice(from);
    if (/^[|>][-+0-9]*\s*(?:#.*)?$/.test(text)) {
      let end = line + 1;
      for (let at = end; at < this.lines.length; ++at) {
        if (this.lines[at]!.trim() === "") continue;
        if (this.indent(at) <= column) break;
        end = at + 1;
      }
      return { kind: "value", line, from, to: this.lines[line]!.length, end, block: true };
    }
    const length = lengthOf(text);
    if (this.indent(this.next(line + 1)) > column) throw new Unsupported(); // it goes on there
    return { kind: "value", line, from, to: from + length, end: line + 1 };
  }
}

// Of a value on one line, without the comment behind it.
function lengthOf(text: string): number {
  if (/^[&*!?%@`]/.test(text)) throw new Unsupported();
  const quoted = /^(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')/.exec(text);
  const length = quoted ? quoted[0].length
    : /^["']/.test(text) ? NaN : /^[[{]/.test(text) ? flowLength(text) : plainLength(text);
  if (!/^\s*(?:\s#.*)?$/.test(text.slice(length)) || Number.isNaN(length)) throw new Unsupported();
  return length;
}

function plainLength(text: string): number {
  const plain = /^(.*?)(?:\s+#.*|\s*)$/.exec(text)![1]!;
  if (/:(?:\s|$)/.test(plain)) throw new Unsupported();
  return plain.length;
}

function flowLength(text: string): number {
  let depth = 0;
  const parts = /"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[[\]{}]|\s#|["']/g;
  for (let match = parts.exec(text); match; match = parts.exec(text)) {
    const [part] = match;
    if (part === "[" || part === "{") ++depth;
    if ((part === "]" || part === "}") && --depth === 0) return match.index + 1;
    if (part === '"' || part === "'" || /#/.test(part[1] ?? "") && part.length === 2) break;
  }
  return NaN;
}

function parse(lines: string[]): Node {
  if (lines.some((line) => /^\s*\t|\r|^\.\.\.\s*$|^%/.test(line))) throw new Unsupported();
  const reader = new Reader(lines);
  let first = reader.next(0);
  if (/^---\s*(?:#.*)?$/.test(lines[first] ?? "")) first = reader.next(first + 1);
  if (lines.slice(first).some((line) => /^---(?:\s|$)/.test(line))) throw new Unsupported();
  if (first === lines.length || indentOf(lines[first]!) !== 0) throw new Unsupported();
  const root = reader.map(first, 0);
  if (reader.next(root.end) < lines.length) throw new Unsupported();
  return root;
}

// ---- writing -----------------------------------------------------------------------------------

function isFlat(value: unknown): boolean {
  return value === null || typeof value !== "object";
}

function isEmpty(value: unknown): boolean {
  return !isFlat(value) && Object.keys(value as object).length === 0;
}

// A list of words on one line, as lists of values are written.
function flowOf(value: unknown, quote: boolean): string | null {
  if (!Array.isArray(value) || !value.every(isFlat)) return null;
  return `[${value.map((one) => {
    const text = scalar(one);
    return quote || /[,[\]{}#:]/.test(text) ? JSON.stringify(one) : text;
  }).join(", ")}]`;
}

// In the quotes of what stood there before.
function wordOf(value: unknown, before: string): string {
  if (typeof value === "string" && before.startsWith('"')) return JSON.stringify(value);
  if (typeof value === "string" && before.startsWith("'") && !/[^\x20-\x7e]/.test(value)) {
    return `'${value.replaceAll("'", "''")}'`;
  }
  return scalar(value);
}

function shifted(text: string, column: number): string[] {
  return text.replace(/\n$/, "").split("\n").map((line) =>
    line === "" ? "" : " ".repeat(column) + line);
}

// The lines of `key: value` at a column.
function keyLines(key: string, value: unknown, column: number): string[] {
  return shifted(toYaml({ [key]: value }), column);
}

function itemLines(value: unknown, column: number): string[] {
  return shifted(toYaml([value]), column);
}

class Writer {
  constructor(private lines: string[]) {}

  text(): string {
    return this.lines.join("\n");
  }

  at(path: Path): Node {
    let node = parse(this.lines);
    for (const step of path) {
      const next = node.kind === "map" ? node.entries.find((one) => one.key === step)?.node
        : node.kind === "list" ? node.items[step as number]?.node : undefined;
      if (!next) throw new Unsupported();
      node = next;
    }
    return node;
  }

  replace(path: Path, value: unknown): void {
    const node = this.at(path);
    const line = node.kind === "value" ? this.lines[node.line]! : "";
    if (node.kind === "value" && !node.block) {
      const before = line.slice(node.from, node.to);
      const flow = flowOf(value, /["']/.test(before));
      const word = isFlat(value) && !/\n/.test(String(value)) ? wordOf(value, before)
        : flow !== null && (before.startsWith("[") || isEmpty(value)) ? flow
          : isEmpty(value) ? "{}" : null;
      if (word !== null) {
        const gap = before === "" ? " " : "";
        this.lines[node.line] = line.slice(0, node.from) + gap + word + line.slice(node.to);
        return;
      }
    }
    this.rewrite(path, node, value);
  }

  // The lines of a whole entry or item, made from its value.
  private rewrite(path: Path, node: Node, value: unknown): void {
    const parent = this.at(path.slice(0, -1));
    const step = path.at(-1)!;
    const own = parent.kind === "map" ? parent.entries.find((one) => one.key === step)
      : parent.kind === "list" ? parent.items[step as number] : undefined;
    if (!own || parent.kind === "value") throw new Unsupported();
    const made = parent.kind === "map" ? keyLines(step as string, value, parent.column)
      : itemLines(value, parent.column);
    // The first key of an item stands behind its dash.
    const before = this.lines[own.line]!.slice(0, parent.column);
    made[0] = before + made[0]!.slice(parent.column);
    this.lines.splice(own.line, node.end - own.line, ...made);
  }

  insert(path: Path, step: string | number, value: unknown): void {
    const parent = this.at(path);
    if (parent.kind === "value") {
      const whole = typeof step === "string" ? { [step]: value } : [value];
      const { line, from, to, block } = parent;
      if (block || !["", "{}", "[]"].includes(this.lines[line]!.slice(from, to))) {
        throw new Unsupported();
      }
      return this.rewrite(path, parent, whole);
    }
    const lines = parent.kind === "map" ? keyLines(step as string, value, parent.column)
      : itemLines(value, parent.column);
    this.lines.splice(parent.end, 0, ...lines);
  }

  remove(path: Path): void {
    const parent = this.at(path.slice(0, -1));
    const step = path.at(-1)!;
    const all = parent.kind === "map" ? parent.entries : parent.kind === "list" ? parent.items : [];
    const own = parent.kind === "map" ? parent.entries.find((one) => one.key === step)
      : parent.kind === "list" ? parent.items[step as number] : undefined;
    if (!own || parent.kind === "value") throw new Unsupported();
    if (all.length === 1) {
      if (path.length < 2) throw new Unsupported();
      return this.rewrite(path.slice(0, -1), parent, parent.kind === "map" ? {} : []);
    }
    const before = this.lines[own.line]!.slice(0, parent.column);
    const next = all[all.indexOf(own as never) + 1];
    // The key after the first one of an item takes its place behind the dash.
    if (before.trim() !== "" && next) {
      this.lines[next.line] = before + this.lines[next.line]!.slice(parent.column);
      this.lines.splice(own.line, next.line - own.line);
    } else {
      this.lines.splice(own.line, own.node.end - own.line);
    }
  }
}

// ---- what has changed --------------------------------------------------------------------------

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function has(writer: Writer, path: Path): boolean {
  try {
    writer.at(path);
    return true;
  } catch (error) {
    if (error instanceof Unsupported) return false;
    throw error;
  }
}

function put(writer: Writer, path: Path, value: unknown): void {
  if (path.length === 0) throw new Unsupported();
  if (has(writer, path)) writer.replace(path, value);
  else if (has(writer, path.slice(0, -1))) writer.insert(path.slice(0, -1), path.at(-1)!, value);
  else put(writer, path.slice(0, -1), nested(path.at(-1)!, value));
}

function nested(step: string | number, value: unknown): unknown {
  return typeof step === "string" ? { [step]: value } : [value];
}

function applyList(writer: Writer, path: Path, before: unknown[], after: unknown[]): void {
  const common = Math.min(before.length, after.length);
  let head = 0;
  while (head < common && same(before[head], after[head])) ++head;
  const grown = after.length - before.length;
  const tail = grown === -1 ? before.slice(head + 1) : grown === 1 ? after.slice(head + 1) : null;
  const inBlock = has(writer, [...path, before.length - 1]);
  if (grown === 0 && inBlock) {
    before.forEach((one, i) => apply(writer, [...path, i], one, after[i]));
  } else if (grown === -1 && inBlock && same(tail, after.slice(head))) {
    writer.remove([...path, head]);
  } else if (grown === 1 && inBlock && head === before.length) {
    writer.insert(path, head, after[head]);
  } else {
    put(writer, path, after);
  }
}

function apply(writer: Writer, path: Path, before: unknown, after: unknown): void {
  if (same(before, after)) return;
  if (after === undefined) {
    if (has(writer, path)) writer.remove(path);
    return;
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    return applyList(writer, path, before, after);
  }
  const inner = (one: unknown): one is Record<string, unknown> =>
    !isFlat(one) && !Array.isArray(one);
  const written = has(writer, path) ? writer.at(path) : null;
  if (!inner(before) || !inner(after) || isEmpty(after) || written?.kind === "value") {
    return put(writer, path, after);
  }
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    apply(writer, [...path, key], before[key], after[key]);
  }
}

// The text with what differs between the two, which are what it says before and after; null where
// that cannot be done in place.
export function edited(text: string, before: unknown, after: unknown): string | null {
  try {
    const writer = new Writer(text.split("\n"));
    writer.at([]);
    apply(writer, [], before, after);
    return writer.text();
  } catch (error) {
    if (error instanceof Unsupported) return null;
    throw error;
  }
}
