import assert from "node:assert/strict";
import { test } from "node:test";
import {
  FilterError, chooser, commandFilter, compare, isCommandFilter,
} from "../../../web/src/filter.js";

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

test("a field has the name of its column, and letters may be small or capital", () => {
  const more = [
    { name: "objective", also: ["loss"], at: (i: number) => i },
    { name: "preemptions", also: ["Preempted"], at: (i: number) => i },
    ...fields,
  ];
  const found = (text: string) => [0, 1, 2].filter(chooser(text, more));
  assert.deepEqual(found("loss<1"), [0]);
  assert.deepEqual(found("preempted >= 1,State!=failed"), [2]);
  assert.deepEqual(found("LR<0.01"), [2]);
  // The command line knows the fields' own names, in full or without param. and metric.
  assert.equal(commandFilter('Loss<1,lr<2, Preempted>=1,STATE="x, y",word', more),
    'objective<1,lr<2,preemptions>=1,state="x, y",word');
  assert.throws(() => commandFilter("lt<1", more), FilterError);
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
  const tagged = [{ ...fields[0]!, found: (i: number) => ["thesis\nbaseline", "", "Base"][i]! },
    ...fields.slice(1)];
  assert.deepEqual([0, 1, 2].filter(chooser("base", tagged)), [0, 2]);
  assert.deepEqual([0, 1, 2].filter(chooser("base,succ", tagged)), [0]);
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
