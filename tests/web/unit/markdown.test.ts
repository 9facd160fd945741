import assert from "node:assert/strict";
import { test } from "node:test";
import type { VNode } from "preact";
import { Markdown } from "../../../web/src/markdown.js";

// As the page would have it, without its outermost element.
function shown(node: unknown): string {
  if (Array.isArray(node)) return node.map(shown).join("");
  if (node === null || node === undefined) return "";
  if (typeof node === "string") return node.replaceAll("<", "&lt;");
  const { type, props } = node as VNode<{ children?: unknown; href?: string }>;
  const address = props.href === undefined ? "" : ` href=${props.href}`;
  return `<${String(type)}${address}>${shown(props.children)}</>`;
}

function of(text: string): string {
  const root = Markdown({ text }) as VNode<{ children?: unknown }>;
  return shown(root.props.children);
}

test("blocks", () => {
  const cases: [string, string][] = [
    ["", ""],
    ["one\ntwo\n\nthree", "<p>one<br></>two</><p>three</>"],
    ["# a\n## b\n#### c", "<h3>a</><h4>b</><h5>c</>"],
    ["#no", "<p>#no</>"],
    ["- a\n* b\n1. c\n2) d", "<ul><li>a</><li>b</></><ol><li>c</><li>d</></>"],
    ["```\n# as *it* is\n```\nafter", "<pre># as *it* is</><p>after</>"],
    ["```\nno end", "<pre>no end</>"],
    ["a\r\nb", "<p>a<br></>b</>"],
  ];
  for (const [text, wanted] of cases) assert.equal(of(text), wanted, text);
});

test("marks within a line", () => {
  const cases: [string, string][] = [
    ["a **b** *c* `d*e*`", "<p>a <strong>b</> <em>c</> <code>d*e*</></>"],
    ["2 * 3 * 4 and ** x", "<p>2 * 3 * 4 and ** x</>"],
    ["[t](#/t/ns/e/1)", "<p><a href=#/t/ns/e/1>t</></>"],
  ];
  for (const [text, wanted] of cases) assert.equal(of(text), wanted, text);
});

test("nothing of it is HTML, and no address leads elsewhere", () => {
  for (const text of [
    "<script>x</script>", "[a](javascript:alert(1))", "[a](https://example.com/)",
    "[a](//example.com)", "[a](data:text/html,x)", "![p](https://example.com/p.png)", "[a](#x)",
    "&lt;b&gt;",
  ]) {
    assert.equal(of(text), `<p>${text.replaceAll("<", "&lt;")}</>`);
  }
});

test("a hostile note takes no time", () => {
  for (const text of ["*".repeat(16_000), "`".repeat(15_999), "[".repeat(16_000),
    "[a](".repeat(4000), "**a".repeat(5000), "# ".repeat(8000), "- \n".repeat(5000)]) {
    const began = performance.now();
    of(text);
    assert.ok(performance.now() - began < 500, text.slice(0, 8));
  }
});
