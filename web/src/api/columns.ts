// The trials of an experiment by columns, which is how all panels read them: one Float64Array a
// column, one row a trial, in the order of their numbers. NaN is nothing; of a category the value
// is an index of the dictionary; times are seconds since 1970.

export type Kind = "number" | "time" | "category";

export class Column {
  values = new Float64Array(64).fill(NaN);
  private readonly words = new Map<string, number>();
  readonly dictionary: string[] = [];

  constructor(
    readonly name: string,
    readonly kind: Kind,
  ) {}

  reserve(rows: number): void {
    if (rows <= this.values.length) return;
    const grown = new Float64Array(Math.max(rows, this.values.length * 2)).fill(NaN);
    grown.set(this.values);
    this.values = grown;
  }
  code(word: string): number {
    let code = this.words.get(word);
    if (code === undefined) {
      code = this.dictionary.push(word) - 1;
      this.words.set(word, code);
    }
    return code;
  }
  word(row: number): string {
    const code = this.values[row]!;
    return Number.isNaN(code) ? "" : (this.dictionary[code] ?? "");
  }
  // A number, or the word of a category, or null.
  at(row: number): number | string | null {
    const value = this.values[row]!;
    if (Number.isNaN(value)) return null;
    return this.kind === "category" ? (this.dictionary[value] ?? null) : value;
  }
}

export class TrialColumns {
  rows = 0;
  revision = 0;
  needed: string[] = ["objective"]; // columns that a result has values of
  private reserved = 64; // rows that every column has room for
  private trials: Column | undefined;
  private readonly byName = new Map<string, Column>();
  private readonly rowOfTrial = new Map<number, number>();

  get columns(): Column[] {
    return [...this.byName.values()];
  }
  column(name: string): Column | undefined {
    return this.byName.get(name);
  }
  values(name: string): Float64Array {
    return this.byName.get(name)?.values ?? new Float64Array(this.rows).fill(NaN);
  }
  add(name: string, kind: Kind): Column {
    let column = this.byName.get(name);
    if (!column) {
      column = new Column(name, kind);
      column.reserve(Math.max(this.rows, this.reserved));
      this.byName.set(name, column);
    }
    return column;
  }
  trial(row: number): number {
    return this.values("trial")[row] ?? NaN;
  }
  rowOf(trial: number): number | undefined {
    return this.rowOfTrial.get(trial);
  }
  // Its state, by the word that lookOf (state.ts) knows: one that has ended without a result for
  // the search is infeasible, whatever its phase.
  state(row: number): string {
    if (this.byName.get("infeasible")?.values[row] === 1) return "Infeasible";
    return this.byName.get("state")?.word(row) ?? "";
  }
  // The row of this trial, a new one at the end if it has none yet.
  rowFor(trial: number): number {
    const known = this.rowOfTrial.get(trial);
    if (known !== undefined) return known;
    const row = this.rows++;
    this.rowOfTrial.set(trial, row);
    this.reserve(row + 1);
    this.trials!.values[row] = trial;
    return row;
  }
  // Room for so many rows in every column.
  reserve(rows: number): void {
    this.trials ??= this.add("trial", "number");
    if (rows <= this.reserved) return;
    this.reserved = Math.max(rows, 2 * this.reserved);
    for (const column of this.byName.values()) column.reserve(this.reserved);
  }
}

export const ENDED_STATES = new Set([
  "Succeeded", "EarlyStopped", "Failed", "Killed", "MetricsUnavailable",
]);

// Per row, the best objective among the trials that had ended by then; NaN before the first. Only
// trials that ended with a result count, and that keep all constraints, as for the server.
export function bestSoFar(table: TrialColumns, maximize: boolean): Float64Array {
  const objective = table.values("objective");
  const needed = table.needed.map((name) => table.values(name));
  const broken = table.column("breaks")?.values;
  const state = table.column("state");
  const feasible = table.column("feasible")?.values; // no number where the server sees no result
  const best = new Float64Array(table.rows);
  let so = NaN;
  for (let row = 0; row < table.rows; ++row) {
    const value = objective[row]!;
    const word = state?.word(row) ?? "";
    const counts = (word === "Succeeded" || word === "EarlyStopped") &&
      (feasible === undefined || feasible[row] === 1) &&
      needed.every((one) => Number.isFinite(one[row]!)) &&
      (broken === undefined || Number.isNaN(broken[row]!));
    if (counts && (Number.isNaN(so) || (maximize ? value > so : value < so))) so = value;
    best[row] = so;
  }
  return best;
}

// Those of the rows whose values are not all the same.
export function varying(columns: Column[], rows: ArrayLike<number>): Column[] {
  return columns.filter((column) => {
    let first = NaN;
    for (let i = 0; i < rows.length; ++i) {
      const value = column.values[rows[i]!]!;
      if (Number.isNaN(value)) continue;
      if (Number.isNaN(first)) first = value;
      else if (value !== first) return true;
    }
    return false;
  });
}
