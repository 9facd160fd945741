// Where a trial lies in the picture of two parameters.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { PartialDependence } from "../../../web/src/api/analysis.js";
import { Column } from "../../../web/src/api/columns.js";
import type { Parameter, SpaceRules } from "../../../web/src/api/records.js";
import { mayBe, pairOf, placing, possible } from "../../../web/src/contour.js";

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

const may = (pin: Record<string, string>, rules: SpaceRules) =>
  mayBe(new Map(Object.entries(pin)), rules);

test("a parameter that exists by another one has cells only where it does", () => {
  const rules: SpaceRules = {
    conditions: [
      { parameter: "gamma", when: { kernel: ["rbf"] } },
      { parameter: "kernel", when: { model: "svm" } },
      { parameter: "depth", when: { model: { in: ["forest", "tree"] } } },
      { parameter: "width", when: { layers: { min: 2 } } },
      { parameter: "first", when: { layers: { max: 1.5 } } },
      { parameter: "third", when: { layers: [3, 4] } },
    ],
  };
  assert.ok(may({ gamma: "1", model: "svm" }, rules));
  assert.ok(!may({ gamma: "1", model: "forest" }, rules), "by way of the kernel");
  assert.ok(!may({ gamma: "1", kernel: "linear" }, rules));
  assert.ok(!may({ gamma: "1", depth: "2" }, rules), "of different models");
  assert.ok(may({ depth: "2", model: "tree" }, rules));
  assert.ok(may({ width: "1", layers: "2" }, rules) && !may({ width: "1", layers: "1" }, rules));
  assert.ok(!may({ width: "1", first: "1" }, rules) && may({ width: "1", third: "1" }, rules));
  assert.ok(may({ third: "1", layers: "3.0" }, rules));
  assert.ok(may({ lr: "1", model: "svm" }, rules) && may({ gamma: "1", kernel: "rbf" }, {}));
});

test("what is forbidden by just these two has no cell either", () => {
  const rules: SpaceRules = { forbidden: [
    { trees: { min: 150 }, depth: { min: 12 } }, { opt: ["adam"], lr: { min: 1 }, depth: [3] },
  ] };
  assert.ok(!may({ trees: "150", depth: "12" }, rules));
  assert.ok(may({ trees: "149", depth: "12" }, rules));
  assert.ok(may({ opt: "adam", lr: "2" }, rules), "with another depth");
});

const number = (name: string, min: string, max: string): Parameter =>
  ({ name, parameterType: "double", feasibleSpace: { min, max } });

test("a sum that cannot be within its bounds has no cell", () => {
  const parameters = [number("a", "0", "1"), number("b", "0", "1"), number("c", "0.25", "1"),
    { name: "d", parameterType: "discrete", feasibleSpace: { list: ["4", "2"] } } as Parameter];
  const at = (pin: Record<string, string>, linear: SpaceRules["linear"], more: SpaceRules = {}) =>
    mayBe(new Map(Object.entries(pin)), { ...more, linear: linear! }, parameters);
  const order = [{ sum: { a: 1, b: -1 }, max: 0 }]; // a ≤ b
  assert.ok(at({ a: "0.5", b: "0.5" }, order) && at({ a: "0.25", b: "0.5" }, order));
  assert.ok(!at({ a: "0.5", b: "0.25" }, order));
  assert.ok(at({ a: "0.1", b: "0.2" }, [{ sum: { a: 1, b: 1 }, max: 0.3 }]), "rounded");
  assert.ok(!at({ a: "0.1", b: "0.2" }, [{ sum: { a: 1, b: "1" }, min: 0.5, max: 1 }]));
  // Whatever the others are.
  const mixture = [{ sum: { a: 1, b: 1, c: 1 }, max: 1 }];
  assert.ok(at({ a: "0.25", b: "0.5" }, mixture) && !at({ a: "0.5", b: "0.5" }, mixture));
  const discrete = [{ sum: { a: 2, d: -1 }, min: -1 }];
  assert.ok(at({ a: "0.5", b: "0" }, discrete) && !at({ a: "0.25", b: "0" }, discrete));
  const conditions = [{ parameter: "c", when: { d: [4] } }];
  assert.ok(at({ a: "0.5", b: "0.5" }, mixture, { conditions }), "where there is no c");
  assert.ok(!at({ a: "0.8", c: "0.25" }, [{ sum: { a: 1, c: 1 }, max: 1 }], { conditions }));
});

test("a cell that cannot be has no value", () => {
  const model: PartialDependence = {
    basis: { results: 1, leftOut: 0, failed: 0, active: 2 },
    axes: [{ ...axis("a", "b"), parameter: "m" }, { ...axis("1", "2"), parameter: "c" }],
    mean: [1, 2, 3, 4], low: [0, 0, 0, 0], high: [9, 9, 9, 9],
  };
  const { mean, low, high } = possible(model, {
    conditions: [{ parameter: "c", when: { m: ["b"] } }],
  });
  assert.deepEqual([mean, low, high], [[NaN, NaN, 3, 4], [NaN, NaN, 0, 0], [NaN, NaN, 9, 9]]);
});

test("of a report only pairs that it holds are offered, and one of them is chosen", () => {
  const names = ["a", "b", "c", "d"];
  const held = (x: string, y: string) => ["bd", "db", "cd", "dc"].includes(x + y);
  const first = { x: "b", y: "d", xs: ["b", "c", "d"], ys: ["d"] };
  assert.deepEqual(pairOf(names, ["", ""], held), first);
  assert.deepEqual(pairOf(names, ["a", "b"], held), first);
  assert.deepEqual(pairOf(names, ["d", "c"], held), { ...first, x: "d", y: "c", ys: ["b", "c"] });
  const any = { x: "a", y: "b", xs: names, ys: ["b", "c", "d"] };
  assert.deepEqual(pairOf(names, ["a", "a"], () => true), any);
  assert.deepEqual(pairOf(names, ["", ""], () => false), any, "it says that it holds none");
  assert.equal(pairOf(["a"], ["", ""], () => true).y, "");
});
