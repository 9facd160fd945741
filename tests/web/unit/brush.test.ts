// What is chosen along an axis leaves in what was chosen, whether the filter can say it or not.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Kind } from "../../../web/src/api/columns.js";
import { Column } from "../../../web/src/api/columns.js";
import type { Brush } from "../../../web/src/brush.js";
import { describe, meets, parseBrush, printBrush, termsOf } from "../../../web/src/brush.js";
import { chooser, withoutField } from "../../../web/src/filter.js";

function column(name: string, kind: Kind, values: (string | number | null)[]): Column {
  const made = new Column(name, kind);
  made.reserve(values.length);
  values.forEach((value, row) => {
    if (value !== null) made.values[row] = typeof value === "string" ? made.code(value) : value;
  });
  return made;
}

const rowsOf = (of: Column, rows: number, brush: Brush) =>
  Array.from({ length: rows }, (_, row) => row).filter(meets(brush, of));

// The rows that a brush chooses, by its terms where it has some, which must choose the same.
function chosen(
  of: Column, rows: number, brush: Brush,
): { terms: string[] | null; rows: number[] } {
  const exact = rowsOf(of, rows, brush);
  const terms = termsOf(brush, of, rows);
  const fields = [{ name: of.name, at: (row: number) => of.at(row) }];
  if (terms !== null) {
    const said = Array.from({ length: rows }, (_, row) => row)
      .filter(chooser(terms.join(","), fields));
    assert.deepEqual(said, exact, terms.join(","));
  }
  const again = parseBrush(printBrush(brush))!;
  assert.deepEqual(rowsOf(of, rows, again), exact, "from the address");
  return { terms, rows: exact };
}

test("one word of any letters chooses the trials that have it", () => {
  const words = ["a", "a,b", '=1+1', "<b>x</b>", 'say "hi"', 'sgd, "slow"', '5" disk, new', " x ",
    "", '"q"', 'a,"b,c"', "=", "!=", "Adam", "adam"];
  const opt = column("param.opt", "category", words);
  const beside: string[] = [];
  for (const [row, word] of words.entries()) {
    const made = chosen(opt, words.length, { column: opt.name, words: [word] });
    assert.deepEqual(made.rows, [row], word);
    if (made.terms === null) beside.push(word);
  }
  // What the filter cannot say: an odd number of quotes, commas both within pairs and without, and
  // a word that differs from another by case alone.
  assert.deepEqual(beside, ['5" disk, new', 'a,"b,c"', "Adam", "adam"]);
  assert.deepEqual(termsOf({ column: opt.name, words: ["=1+1"] }, opt, words.length),
    ['param.opt="=1+1"']);
});

test("several words are the terms that leave out the others, unless some trial has none", () => {
  const four = ["a", "b", "c", "d"];
  const opt = column("opt", "category", four);
  const brush = { column: "opt", words: ["a", "b", "c"] };
  assert.deepEqual(chosen(opt, 4, brush), { terms: ["opt!=d"], rows: [0, 1, 2] });
  const some = column("opt", "category", [...four, null]);
  assert.deepEqual(chosen(some, 5, brush), { terms: null, rows: [0, 1, 2] });
});

test("what has no value is chosen in words where there are words, else beside the filter", () => {
  const kernel = column("kernel", "category", ["rbf", null, "linear"]);
  assert.deepEqual(chosen(kernel, 3, { column: "kernel", none: true }),
    { terms: ["kernel!=rbf", "kernel!=linear"], rows: [1] });
  const depth = column("depth", "number", [1, NaN, 3]);
  assert.deepEqual(chosen(depth, 3, { column: "depth", none: true }), { terms: null, rows: [1] });
});

test("a bound has the digits that what was chosen needs, and no more", () => {
  const narrow = column("x", "number", [0.98221, 0.982222, 0.982228, 0.98224]);
  const brush = { column: "x", low: 0.9822195, high: 0.9822301 };
  const { terms, rows } = chosen(narrow, 4, brush);
  assert.deepEqual(rows, [1, 2]);
  assert.deepEqual(terms, ["x>=0.98222", "x<=0.98223"]);
  const wide = column("x", "number", [0, 10, 20, 30]);
  assert.deepEqual(chosen(wide, 4, { column: "x", low: 7.123456, high: 22.98765 }).terms,
    ["x>=7.12", "x<=23"]);
});

test("a name that the filter cannot hold is chosen by all the same", () => {
  const odd = column('param.p, "q" | x<1', "number", [0.1, 0.5, 0.9]);
  assert.deepEqual(chosen(odd, 3, { column: odd.name, low: 0.4, high: 0.6 }),
    { terms: null, rows: [1] });
});

test("a choice says what it is; what is none is not read", () => {
  assert.equal(describe({ column: "param.lr", low: 0.1, high: 0.2 }), "lr from 0.1 to 0.2");
  assert.equal(describe({ column: "param.opt", words: ["a", "b,c"] }), "opt is a or b,c");
  assert.equal(describe({ column: "param.depth", none: true }), "depth: none");
  for (const text of ["", "{", "3", "null", "{}", '{"column":1}', '{"column":"a","low":"x"}',
    '{"column":"a","words":[1]}']) {
    assert.equal(parseBrush(text), null, text);
  }
});

test("only the terms of the field itself are replaced, by whichever of its names", () => {
  const fields = ["param.lr", "param.lr2", "state"].map((name) => ({ name, at: () => 0 }));
  const without = (text: string) => withoutField(text, "param.lr", fields);
  assert.equal(without("param.lr2<3,lr<1,param.lr>0.1,state=Failed"), "param.lr2<3,state=Failed");
  assert.equal(without('lr<1,opt="a'), null);
});
