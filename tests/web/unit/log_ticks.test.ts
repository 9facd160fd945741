// The lines and numbers of a logarithmic axis.
import assert from "node:assert/strict";
import { test } from "node:test";
import { logLabels, logSplits } from "../../../web/src/log_ticks.js";

const SPACE = 50;

// What is labelled on an axis of so many pixels, whichever way it goes.
function labelled(low: number, high: number, pixels: number): number[] {
  const splits = logSplits(low, high);
  const placeOf = (value: number) => (Math.log(value / low) / Math.log(high / low)) * pixels;
  const labels = logLabels(splits, SPACE, placeOf);
  assert.equal(labels.length, splits.length);
  labels.forEach((label, i) => assert.ok(label === null || label === splits[i]));
  const down = logLabels(splits, SPACE, (value) => pixels - placeOf(value));
  assert.deepEqual(down, labels);
  const kept = labels.filter((label) => label !== null) as number[];
  const gaps = kept.slice(1).map((value, i) => placeOf(value) - placeOf(kept[i]!));
  assert.ok(gaps.every((gap) => gap >= SPACE), `${gaps} of ${kept}`);
  return kept;
}

test("a logarithmic axis has a line at each number of one digit", () => {
  assert.deepEqual(logSplits(0.7, 30), [0.7, 0.8, 0.9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30]);
  assert.deepEqual(logSplits(0.037, 0.1), [0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1]);
  assert.deepEqual(logSplits(2e-7, 4e-7), [2e-7, 3e-7, 4e-7]);
  assert.equal(logSplits(1e-300, 1e300).length, 9 * 600 + 1);
});

test("a narrow one has round numbers of more digits", () => {
  assert.deepEqual(logSplits(0.9, 1), [0.9, 0.95, 1]);
  assert.deepEqual(logSplits(41, 48), [42, 44, 46, 48]);
});

test("below two decades there are numbers between the powers of ten", () => {
  assert.deepEqual(labelled(0.3, 20, 600), [0.5, 1, 2, 5, 10, 20]);
  assert.deepEqual(labelled(1, 81, 500), [1, 2, 5, 10, 20, 50]);
  assert.deepEqual(labelled(0.3, 0.9, 900), [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]);
  assert.deepEqual(labelled(3, 9, 450), [3, 5, 7]);
  assert.deepEqual(labelled(0.9, 1, 400), [0.9, 0.95, 1]);
  assert.deepEqual(labelled(2, 9, 90), [2, 5]);
});

test("above there are powers of ten, as many as there is room for", () => {
  assert.deepEqual(labelled(1e-3, 1e2, 300), [1e-3, 1e-2, 1e-1, 1, 10, 100]);
  const many = labelled(1e-12, 1e12, 410);
  assert.ok(many.length >= 5 && many.length <= 9, `${many}`);
  assert.ok(many.every((value) => value.toExponential().startsWith("1e")), `${many}`);
});

test("what has room for one number has one", () => {
  assert.equal(labelled(2, 9, 30).length, 1);
  assert.equal(labelled(0.5, 200, 30).length, 1);
});
