// What is downloaded as CSV.
import assert from "node:assert/strict";
import { test } from "node:test";
import { csv } from "../../../web/src/ui/panel.js";

const cellOf = (cell: string | number) => csv({ columns: [], rows: [[cell]] }).slice(2, -2);

test("cells with commas, quotes and line breaks stand in quotes", () => {
  assert.equal(csv({ columns: ["a,b", "c"], rows: [['say "x"', 1], ["two\nlines", ""]] }),
    '"a,b",c\r\n"say ""x""",1\r\n"two\nlines",\r\n');
});

test("a text is never a formula of a spreadsheet", () => {
  const texts = ["=1+1", "+cmd|x", "-2+3", "@SUM(A1)", "--flag", "-", "\t=1"];
  assert.deepEqual(texts.map(cellOf), texts.map((text) => `'${text}`));
  assert.equal(cellOf('=HYPERLINK("x")'), `"'=HYPERLINK(""x"")"`);
  assert.equal(cellOf("\r=1"), `"'\r=1"`);
  assert.equal(csv({ columns: ["=x"], rows: [] }), "'=x\r\n");
});

test("numbers stay numbers, and other texts what they are", () => {
  const cells = [-1.5, 0, 1e-7, -1e21, "-1.5", "+0.5", "-3.25e-9", "a=b", "'=x", "1-2", "–", ""];
  assert.deepEqual(cells.map(cellOf), cells.map(String));
  assert.deepEqual([-Infinity, NaN].map(cellOf), ["-Infinity", "NaN"]);
});
