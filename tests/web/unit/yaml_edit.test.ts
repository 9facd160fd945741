// Fields are changed in the text: what is not changed stays as it was written.
import assert from "node:assert/strict";
import { test } from "node:test";
import { edited } from "../../../web/src/yaml_edit.js";

const TEXT = `# What we tune, and why
apiVersion: kubeflow.org/v1beta1
metadata:
  name: digits # not "digits-2"
spec:
  maxTrialCount: 8   # enough for a night
  shirabe:
    budget: {maxCost: 1.0, currency: USD}
  parameters:
    # on a scale of logarithms
    - name: lr
      parameterType: double
      feasibleSpace:
        min: "1e-4"
        max: '0.1'
    - name: opt # two of them
      feasibleSpace:
        list: ["adam", "sgd, slow"]
  trialTemplate:
    trialSpec:
      args:
      - one
      - |
        two
          lines
      - "three"

# the end
`;

function record() {
  return {
    apiVersion: "kubeflow.org/v1beta1",
    metadata: { name: "digits" } as Record<string, unknown>,
    spec: {
      maxTrialCount: 8 as number | undefined,
      shirabe: { budget: { maxCost: 1, currency: "USD" } as object, seed: undefined as unknown },
      parameters: [
        { name: "lr", parameterType: "double", feasibleSpace: { min: "0.0001", max: "0.1" } },
        { name: "opt", feasibleSpace: { list: ["adam", "sgd, slow"] } },
      ] as { name: string; feasibleSpace: Record<string, unknown> }[],
      trialTemplate: { trialSpec: { args: ["one", "two\n  lines\n", "three"] } },
    },
  };
}

// The lines that a change of the record takes away and brings.
function changed(edit: (copy: ReturnType<typeof record>) => void): string[] | null {
  const after = record();
  edit(after);
  const text = edited(TEXT, record(), after);
  if (text === null) return null;
  const [old, now] = [TEXT.split("\n"), text.split("\n")];
  let tail = 0;
  while (old.at(-1 - tail) === now.at(-1 - tail) && tail < Math.min(old.length, now.length)) ++tail;
  let head = 0;
  while (head < Math.min(old.length, now.length) - tail && old[head] === now[head]) ++head;
  return [
    ...old.slice(head, old.length - tail).map((line) => `-${line}`),
    ...now.slice(head, now.length - tail).map((line) => `+${line}`),
  ];
}

test("nothing changes where nothing has changed", () => assert.deepEqual(changed(() => 0), []));

test("a value is written over, with the comment behind it and in its quotes", () => {
  assert.deepEqual(changed((copy) => (copy.metadata["name"] = "digits-2")),
    ['-  name: digits # not "digits-2"', '+  name: digits-2 # not "digits-2"']);
  assert.deepEqual(changed((copy) => (copy.spec.maxTrialCount = 20)),
    ["-  maxTrialCount: 8   # enough for a night", "+  maxTrialCount: 20   # enough for a night"]);
  assert.deepEqual(changed((copy) => (copy.spec.parameters[0]!.feasibleSpace["min"] = "1e-5")),
    ['-        min: "1e-4"', '+        min: "1e-5"']);
  assert.deepEqual(changed((copy) => (copy.spec.parameters[0]!.feasibleSpace["max"] = "it's 1")),
    ["-        max: '0.1'", "+        max: 'it''s 1'"]);
});

test("a list on one line stays on it, and keeps values with commas whole", () => {
  assert.deepEqual(changed((copy) =>
    (copy.spec.parameters[1]!.feasibleSpace["list"] = ["adam", "sgd, slow", 'say "hi"'])), [
    '-        list: ["adam", "sgd, slow"]',
    '+        list: ["adam", "sgd, slow", "say \\"hi\\""]',
  ]);
});

test("fields and items come after what is there, and leave nothing of themselves", () => {
  assert.deepEqual(changed((copy) => (copy.metadata["namespace"] = "team")),
    ["+  namespace: team"]);
  assert.deepEqual(changed((copy) => copy.spec.parameters.push(
    { name: "x", feasibleSpace: { min: "0" } })),
  ["+    - name: x", "+      feasibleSpace:", '+        min: "0"']);
  assert.deepEqual(changed((copy) => delete copy.spec.maxTrialCount),
    ["-  maxTrialCount: 8   # enough for a night"]);
  assert.equal(changed((copy) => copy.spec.parameters.shift())![0], "-    - name: lr");
  assert.deepEqual(changed((copy) => copy.spec.trialTemplate.trialSpec.args.push("--x=1")),
    ["+      - --x=1"]);
  assert.deepEqual(changed((copy) => (copy.spec.trialTemplate.trialSpec.args[2] = "3")),
    ['-      - "three"', '+      - "3"']);
});

test("a record on one line is written out when it changes, and no other line", () => {
  assert.deepEqual(changed((copy) => (copy.spec.shirabe.budget = { maxCost: 2 })), [
    "-    budget: {maxCost: 1.0, currency: USD}", "+    budget:", "+      maxCost: 2",
  ]);
  assert.deepEqual(changed((copy) => (copy.spec.shirabe.seed = 7)), ["+    seed: 7"]);
});

test("the first field of an item leaves its place to the second", () => {
  const text = "a:\n  - x: 1\n    y: 2\n";
  assert.equal(edited(text, { a: [{ x: 1, y: 2 }] }, { a: [{ y: 2 }] }), "a:\n  - y: 2\n");
  assert.equal(edited(text, { a: [{ x: 1, y: 2 }] }, { a: [{ x: [], y: 2 }] }),
    "a:\n  - x: []\n    y: 2\n");
  assert.equal(edited("a: {}\n", { a: {} }, { a: { b: [1] } }), "a:\n  b:\n    - 1\n");
});

test("what it does not know it does not touch", () => {
  for (const text of [
    "a: &x 1\nb: *x\n", "a: one\n  two\n", "a: 'one\n  two'\n", "{a: 1}\n", "? a\n: 1\n",
    "a: 1\n---\na: 2\n", "a:\t1\n\tb: 2\n", "a: [1,\n  2]\n", "a: 1\na: 2\n", "a: 1\r\n", "",
  ]) {
    assert.equal(edited(text, { a: 1 }, { a: 3 }), null, JSON.stringify(text));
  }
});
