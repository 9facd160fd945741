// The filter language of `shirabe get --filter`: state=Failed,param.lr<1e-3. Terms are parted by
// commas and all hold; a value with a comma stands in double quotes. Here it chooses among columns
// or records in the browser, so that every panel of a page shows the same ones at once; "as
// command" prints it as it is. What is no condition is searched for in the names.

export type Value = number | string | null | undefined;
export interface Field {
  name: string;
  also?: string[]; // what else it is called, such as the heading of its column
  text?: boolean; // never compared by size
  found?: (i: number) => string; // what a search finds it by as well
  at: (i: number) => Value;
}

export class FilterError extends Error {}

interface Term {
  field: string;
  operator: string;
  value: string;
}

function split(text: string): string[] {
  const parts: string[] = [];
  let part = "";
  let quoted = false;
  for (const c of text) {
    if (c === '"') quoted = !quoted;
    if (c === "," && !quoted) {
      parts.push(part);
      part = "";
    } else {
      part += c;
    }
  }
  if (quoted) throw new FilterError("a quote is not closed");
  parts.push(part);
  return parts.map((one) => one.trim()).filter((one) => one !== "");
}

export function parseFilter(text: string): Term[] {
  return split(text).map((part) => {
    const match = /^([^=!<>]+?)\s*(==|!=|<=|>=|=|<|>)\s*(.*)$/s.exec(part);
    if (!match) return { field: "", operator: "~", value: part.replace(/^"(.*)"$/s, "$1") };
    const [, field, operator, value] = match as unknown as [string, string, string, string];
    return {
      field: field.trim(),
      operator: operator === "==" ? "=" : operator,
      value: value.replace(/^"(.*)"$/s, "$1"),
    };
  });
}

// As the command line finds it.
function known(fields: Field[], name: string): Field | undefined {
  return fields.find((one) => one.name === name) ??
    fields.find((one) => one.name === `param.${name}`) ??
    fields.find((one) => one.name === `metric.${name}`);
}

// Also by its other names, in small or capital letters.
function find(fields: Field[], name: string): Field {
  const wanted = name.toLowerCase();
  const found = known(fields, name) ?? fields.find((one) =>
    [one.name, one.name.replace(/^(param|metric)\./, ""), ...(one.also ?? [])]
      .some((word) => word.toLowerCase() === wanted));
  if (found) return found;
  const names = fields.map((one) => one.name);
  throw new FilterError(`there is no field "${name}" (fields: ${names.join(", ")})`);
}

function holds(value: Value, term: Term, text: boolean): boolean {
  const missing = value === null || value === undefined || Number.isNaN(value);
  if (missing) return term.operator === "!=";
  const number = Number(term.value);
  const numeric = !text && typeof value === "number" && term.value.trim() !== "" &&
    !Number.isNaN(number);
  const a = numeric ? (value as number) : String(value).toLowerCase();
  const b = numeric ? number : term.value.toLowerCase();
  switch (term.operator) {
    case "=": return a === b;
    case "!=": return a !== b;
    case "<": return numeric && a < b;
    case "<=": return numeric && a <= b;
    case ">": return numeric && a > b;
    default: return numeric && a >= b;
  }
}

// Which records are chosen: a function of their index. FilterError says what is wrong with a term.
export function chooser(text: string, fields: Field[]): (i: number) => boolean {
  const tests = parseFilter(text).map((term) => {
    if (term.operator === "~") {
      const wanted = term.value.toLowerCase();
      const texts = fields.filter((one) => one.text);
      return (i: number) =>
        texts.some((one) =>
          `${one.at(i) ?? ""}\n${one.found?.(i) ?? ""}`.toLowerCase().includes(wanted));
    }
    const field = find(fields, term.field);
    const ordered = /[<>]/.test(term.operator);
    if (ordered && (field.text || Number.isNaN(Number(term.value)) || term.value === "")) {
      throw new FilterError(
        field.text
          ? `${field.name} is text, which is not compared by size: use = or !=`
          : `"${term.value}" is not a number, and only numbers are compared by size`,
      );
    }
    return (i: number) => holds(field.at(i), term, field.text ?? false);
  });
  return (i) => tests.every((test) => test(i));
}

// Is it written in the language of the command line alone, without a search?
export function isCommandFilter(text: string): boolean {
  return parseFilter(text).every((term) => term.operator !== "~");
}

// With the names that the command line knows. FilterError where there is no such field.
export function commandFilter(text: string, fields: Field[]): string {
  return split(text).map((part) => {
    const [term] = parseFilter(part);
    if (!term || term.operator === "~" || known(fields, term.field)) return part;
    return find(fields, term.field).name + part.slice(term.field.length);
  }).join(",");
}

// Numbers before texts before nothing, which is last in either direction.
export function compare(a: Value, b: Value, descending: boolean): number {
  const rank = (v: Value) =>
    v === null || v === undefined || v === "" || Number.isNaN(v) ? 2
      : typeof v === "number" ? 0 : 1;
  const [ra, rb] = [rank(a), rank(b)];
  if (ra !== rb) return ra - rb;
  if (ra === 2) return 0;
  const order = ra === 0
    ? (a as number) - (b as number)
    : (a as string).localeCompare(b as string, "en");
  return descending ? -order : order;
}

// Without the terms of this field, by whichever of its names; null if the filter cannot be read.
export function withoutField(text: string, name: string, fields: Field[]): string | null {
  try {
    return split(text).filter((part) => {
      const [term] = parseFilter(part);
      return term === undefined || term.operator === "~" || find(fields, term.field).name !== name;
    }).join(",");
  } catch (error) {
    if (error instanceof FilterError) return null;
    throw error;
  }
}
