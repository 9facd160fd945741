import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bytes, duration, known, money, percent, shellWord, short, word,
} from "../../../web/src/format.js";
import {
  LONGEST_LINE, LONGEST_LOG, LogText, lastLines, printableLine,
} from "../../../web/src/log.js";
import { shownOf } from "../../../web/src/pages/context.js";
import { link, parsePlace } from "../../../web/src/url.js";

test("numbers keep their sign and size", () => {
  const cases: [number, string][] = [
    [0, "0"], [0.9822222222, "0.982222"], [-0.5, "-0.5"], [1e-7, "1e-7"], [-3.25e-9, "-3.25e-9"],
    [123456789, "1.2346e+8"], [100, "100"], [NaN, "–"], [Infinity, "∞"], [-12345.678, "-12345.7"],
  ];
  for (const [value, text] of cases) assert.equal(short(value), text);
});

test("a word that would not be seen stands in quotes", () => {
  assert.deepEqual(["", "  ", "a b", "–", "0"].map(word), ['""', '"  "', "a b", "–", "0"]);
});

test("how long something took is not said where it is not known", () => {
  assert.deepEqual([0, NaN, 0.42].map(known), ["–", "–", "0.4 s"]);
});

test("durations take two units at most", () => {
  const cases: [number, string][] = [
    [0.42, "0.4 s"], [59.6, "1 min"], [61, "1 min 1 s"], [599, "9 min 59 s"], [601, "10 min"],
    [3600, "1 h"], [5400, "1 h 30 min"], [90000, "1 d 1 h"], [NaN, "–"],
  ];
  for (const [value, text] of cases) assert.equal(duration(value), text);
});

test("amounts", () => {
  assert.equal(money(0.00123, "USD"), "$0.0012");
  assert.equal(money(12.345, "EUR"), "EUR 12.35");
  assert.equal(percent(0.0183), "1.8 %");
  assert.equal(percent(0.5), "50 %");
  assert.equal(bytes(27000), "26.4 KiB");
});

test("words of a shell are quoted where they must be", () => {
  assert.equal(shellWord("lr=0.1"), "lr=0.1");
  assert.equal(shellWord("~objective"), "'~objective'");
  assert.equal(shellWord("it's; rm -rf"), `'it'\\''s; rm -rf'`);
  assert.equal(shellWord("a<1"), "'a<1'");
});

test("a log is text: no control sequences, no line of megabytes, a bar's last state", () => {
  assert.equal(printableLine("\u001b[31mred\u001b[0m"), "red");
  assert.equal(printableLine("\u001b]0;title\u0007x"), "x");
  assert.equal(printableLine("10 %\r20 %\r30 %\r"), "30 %");
  assert.equal(printableLine("a\u0000b\u202ec"), "a\ufffdb\ufffdc");
  assert.equal(printableLine("<script>alert(1)</script>"), "<script>alert(1)</script>");
  const log = new LogText();
  for (let i = 0; i < 200; ++i) log.add("x".repeat(50_000));
  log.add("\nnext");
  assert.ok(log.text.length < LONGEST_LINE + 100);
  assert.match(log.text, /a line of 10000000 characters\)\nnext$/);
});

test("of a long log the end is kept, and what is missing is counted", () => {
  const log = new LogText();
  for (let i = 0; i < 30_000; ++i) log.add(`line ${i} ${"x".repeat(100)}\n`);
  assert.ok(log.text.length <= LONGEST_LOG);
  assert.match(log.text, /line 29999 /);
  assert.equal(log.dropped + log.lines.length, 30_000);
  log.add("no newline y");
  log.add("et");
  assert.ok(log.text.endsWith("no newline yet"));
});

test("addresses go there and back, whatever names hold", () => {
  const names = ["a/b", "100%", "ü ?&#", "..", '<"'];
  for (const name of names) {
    const place = parsePlace(link(["e", name, "x"], { filter: name, sel: [name, "2"] }));
    assert.deepEqual(place.path, ["e", name, "x"]);
    assert.equal(place.params.get("filter"), name);
    assert.deepEqual(place.params.getAll("sel"), [name, "2"]);
  }
  assert.deepEqual(parsePlace("#/e/%zz").path, ["e", "%zz"]);
});

test("the last lines of a log are as they were printed, and of one without an end there are none",
  async () => {
    const body = (text: string) => new Response(text).body!;
    assert.equal(await lastLines(body("one\ntwo\n\nthree é\n\n"), 2), "\nthree é");
    assert.equal(await lastLines(body("one"), 10), "one");
    assert.equal(await lastLines(body(""), 10), "");
    assert.equal(await lastLines(body("x".repeat(100)), 10, 50), null);
  });

test("one trial is not called trials", () => {
  const data = (rows: number) => ({ table: { rows } }) as unknown as Parameters<typeof shownOf>[1];
  assert.equal(shownOf(1, data(1)), "1 trial");
  assert.equal(shownOf(1, data(1200)), "1 of 1,200 trials shown");
});
