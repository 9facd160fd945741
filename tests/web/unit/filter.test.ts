import assert from "node:assert/strict";
import { test } from "node:test";
import { FilterError, chooser, compare, isCommandFilter } from "../../../web/src/filter.js";

const rows = [
  { state: "Succeeded", lr: 0.1, opt: "adam" },
  { state: "Failed", lr: NaN, opt: 'sgd, "slow"' },
  { state: "Running", lr: 1e-4, opt: "sgd, slow" },
];
const fields = [
  { name: "state", text: true, at: (i: number) => rows[i]!.state },
  { name: "param.lr", at: (i: number) => rows[i]!.lr },
  { name: "param.opt", at: (i: number) => rows[i]!.opt },
];
const chosen = (text: string) => [0, 1, 2].filter(chooser(text, fields));

test("terms hold together, and names may be short", () => {
  assert.deepEqual(chosen("lr<0.01"), [2]);
  assert.deepEqual(chosen("param.lr>=1e-4,state=succeeded"), [0]);
  assert.deepEqual(chosen("lr>1e-5, state != Running"), [0]);
  assert.deepEqual(chosen(""), [0, 1, 2]);
});

test("nothing differs from everything and is never less", () => {
  assert.deepEqual(chosen("lr!=5"), [0, 1, 2]);
  assert.deepEqual(chosen("lr<5"), [0, 2]);
});

test("a comma stands in quotes", () => {
  assert.deepEqual(chosen('opt="sgd, slow"'), [2]);
  assert.throws(() => chosen('opt="sgd'), FilterError);
});

test("what is no condition is searched for, and is no filter of the command line", () => {
  assert.deepEqual(chosen("succ"), [0]);
  assert.equal(isCommandFilter("succ"), false);
  assert.equal(isCommandFilter("lr<1,state=Failed"), true);
});

test("a mistake is named", () => {
  assert.throws(() => chosen("lt<1"), /there is no field "lt" \(fields: state, param.lr/);
  assert.throws(() => chosen("state<1"), /state is text/);
  assert.throws(() => chosen("lr<x"), /"x" is not a number/);
});

test("what is missing comes last in either direction", () => {
  const values = [3, NaN, -1, 2];
  assert.deepEqual([...values].sort((a, b) => compare(a, b, false)), [-1, 2, 3, NaN]);
  assert.deepEqual([...values].sort((a, b) => compare(a, b, true)), [3, 2, -1, NaN]);
});
