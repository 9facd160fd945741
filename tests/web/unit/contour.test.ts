// Where a trial lies in the picture of two parameters.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Column } from "../../../web/src/api/columns.js";
import { placing } from "../../../web/src/contour.js";

const axis = (...values: string[]) => ({ parameter: "x", values, coordinates: [], leftOut: 0 });

function numbers(...values: number[]): Column {
  const column = new Column("param.x", "number");
  values.forEach((value, row) => (column.values[row] = value));
  return column;
}

const places = (n: number, place: (row: number) => number) =>
  Array.from({ length: n }, (_, row) => Number(place(row).toFixed(6)));

test("a trial lies between the middles of the cells that its value is between", () => {
  // Values that the model has no cell for are left out of its grid: 60, then 80.
  const trees = axis("50", "60", "80");
  assert.deepEqual(places(6, placing(trees, numbers(50, 55, 60, 70, 80, NaN), false)),
    [0.5, 1, 1.5, 2, 2.5, NaN]);
  assert.deepEqual(places(2, placing(trees, numbers(-1000, 1000), false)), [0, 3]);
});

test("on a logarithmic axis they lie by their logarithm", () => {
  const made = placing(axis("0.01", "0.1", "1"), numbers(0.01, 0.0316227766, 0.1, 1), true);
  assert.deepEqual(places(4, made), [0.5, 1, 1.5, 2.5]);
});

test("trials of one category stand side by side within its cell; another is nowhere", () => {
  const column = new Column("param.opt", "category");
  ["a", "b", "b", "c"].forEach((word, row) => (column.values[row] = column.code(word)));
  const [a, b, again, c] = places(4, placing(axis("a", "b"), column, false));
  assert.ok(a! > 0 && a! < 1 && b! > 1 && b! < 2 && again! > 1 && again! < 2);
  assert.notEqual(b, again);
  assert.ok(Number.isNaN(c));
});
