// Where trials lie among the cells of a contour. Pure functions.
import type { GridAxis } from "./api/analysis.js";
import type { Column } from "./api/columns.js";

// Where values of a parameter lie, in cells: the model's own values are in the middle of theirs,
// and others between them. Categories have one place each; they stand side by side within their
// cell, the same way each time. NaN = not on this axis.
export function placing(axis: GridAxis, column: Column, log: boolean): (row: number) => number {
  const { values } = axis;
  if (column.kind === "category") {
    const cells = column.dictionary.map((word) => values.indexOf(word));
    return (row) => {
      const cell = cells[column.values[row]!] ?? -1;
      return cell < 0 ? NaN : cell + 0.5 + (((row * 7919) % 21) - 10) / 33;
    };
  }
  const scaled = (value: number) => (log && value > 0 ? Math.log(value) : value);
  const grid = values.map((text) => scaled(Number(text)));
  const last = grid.length - 1;
  return (row) => {
    const value = column.values[row]!;
    if (!Number.isFinite(value)) return NaN;
    if (last === 0) return 0.5;
    const at = scaled(value);
    let i = 0;
    while (i < last - 1 && grid[i + 1]! <= at) ++i;
    const place = i + 0.5 + (at - grid[i]!) / (grid[i + 1]! - grid[i]!);
    return Math.max(0, Math.min(grid.length, place));
  };
}
