import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { messageReader } from "../../../web/src/api/http.js";
import { FORMAT, Replies, keyOf, swapped } from "../../../web/src/report/replies.js";

const BASE = "api/v1/namespaces/default/experiments/one";

function replies(given: Record<string, unknown>): Replies {
  const entries = Object.entries(given);
  return new Replies({
    format: FORMAT, made: 0, program: "1", namespace: "default", experiment: "one", trials: 9,
    trialPages: 1, leftOut: [],
    replies: entries.map(([path], i) => [path, "application/json", i]),
    bodies: entries.map(([, body]) =>
      gzipSync(typeof body === "string" ? body : JSON.stringify(body)).toString("base64")),
  });
}

test("a path is found whatever it says of sizes, and in whatever order", () => {
  assert.equal(keyOf(`${BASE}/curves?px=1400&metric=a%20b&trials=1,2&axis=step&scale=log`),
    keyOf(`${BASE}/curves?axis=step&metric=a+b&px=700&trials=3`));
  assert.notEqual(keyOf(`${BASE}/curves?metric=a&axis=time`), keyOf(`${BASE}/curves?metric=a`));
  assert.notEqual(keyOf(`${BASE}/columns?pageToken=c7.0`), keyOf(`${BASE}/columns`));
});

test("replies come as they were recorded, and what is not there is a 404 in words", async () => {
  const report = replies({ [`${BASE}/trials/3`]: { number: 3 }, [`${BASE}/trials/3/x`]: "é<" });
  assert.deepEqual(await (await report.answer(`${BASE}/trials/3`, "GET")).json(), { number: 3 });
  assert.equal(await (await report.answer(`${BASE}/trials/3/x`, "GET")).text(), "é<");
  for (const [path, words] of [
    [`${BASE}/trials/4`, /pages of 1 of 9 trials, of trial 4 only its row.*--trials N/],
    [`${BASE}/trials/3/attempts/1/log?follow=true`, /no log of it; shirabe report one --logs/],
    ["api/v1/capacity", /does not hold that/],
    [`${BASE}/watch`, /does not hold that/],
  ] as const) {
    const reply = await report.answer(path, "GET");
    assert.equal(reply.status, 404, path);
    assert.match(((await reply.json()) as { message: string }).message, words);
  }
});

test("nothing can be changed, and no right to change is claimed", async () => {
  const report = replies({ [BASE]: {} });
  for (const method of ["POST", "DELETE", "PUT", "PATCH"]) {
    assert.equal((await report.answer(BASE, method)).status, 405);
  }
  const rights = await (await report.answer("api/v1/rights?namespace=x", "GET")).json();
  assert.deepEqual(rights,
    { name: "", namespace: "x", read: true, create: false, change: false, delete: false });
});

test("the list of experiments is the one that it has", async () => {
  const report = replies({ [BASE]: { kind: "Experiment" } });
  const list = await (await report.answer("api/v1/experiments?pageSize=2000", "GET")).json();
  assert.deepEqual((list as { items: unknown[] }).items, [{ kind: "Experiment" }]);
});

test("a log is told as the server streams one that has ended", async () => {
  const path = `${BASE}/trials/1/attempts/1/log`;
  const report = replies({ [path]: "a\nevent: end\n\ndata: b" });
  const stream = await (await report.answer(`${path}?follow=true`, "GET")).text();
  const messages = messageReader()(stream);
  assert.deepEqual(JSON.parse(messages[0]!.data), { text: "a\nevent: end\n\ndata: b" });
  assert.equal(messages[1]!.event, "end");
  assert.equal(messages.length, 2);
  assert.equal(await (await report.answer(path, "GET")).text(), "a\nevent: end\n\ndata: b");
});

test("two parameters are found in either order, and change places with their values", async () => {
  const surface = {
    axes: [{ values: ["a", "b"] }, { values: ["1", "2", "3"] }],
    mean: [11, 12, 13, 21, 22, 23], low: [0, 1, 2, 3, 4, 5], high: [6, 7, 8, 9, 10, 11],
  };
  assert.deepEqual(swapped(surface).mean, [11, 21, 12, 22, 13, 23]);
  assert.deepEqual(swapped(swapped(surface)), surface);
  const path = `${BASE}/partial-dependence`;
  const report = replies({ [`${path}?parameter=x&with=y`]: surface });
  const turned = await (await report.answer(`${path}?parameter=y&with=x`, "GET")).json();
  assert.deepEqual(turned, swapped(surface));
  const held = ["parameter=x&with=y", "parameter=y&with=x", "with=x&parameter=z", "parameter=x"]
    .map((query) => report.holds(`${path}?${query}`));
  assert.deepEqual(held, [true, true, false, false]);
});
