// Notes of people: a subset of Markdown, as nodes of the page. No HTML, no pictures, and no address
// but those of this page ("#/e/…"): what else is written stays text. A note cannot make the page do
// or fetch anything, and reading it takes time linear in its length.
import type { ComponentChildren } from "preact";

type Nodes = ComponentChildren[];

// Of one line: `code`, **strong**, *emphasis*, [text](#/address). The first mark that closes wins.
const MARKS = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^\][]*)\]\(([^()\s]*)\)/g;
const LONGEST = 2000; // a longer line is text as it is

export function inline(text: string): Nodes {
  if (text.length > LONGEST) return [text];
  const nodes: Nodes = [];
  let from = 0;
  for (const found of text.matchAll(MARKS)) {
    const [all, code, strong, emphasis, label, address = ""] = found;
    nodes.push(text.slice(from, found.index));
    from = found.index + all.length;
    if (code !== undefined) nodes.push(<code>{code}</code>);
    else if (strong !== undefined) nodes.push(<strong>{strong}</strong>);
    else if (emphasis !== undefined) nodes.push(<em>{emphasis}</em>);
    else if (address.startsWith("#/")) nodes.push(<a href={address}>{label}</a>);
    else nodes.push(all);
  }
  nodes.push(text.slice(from));
  return nodes.filter((one) => one !== "");
}

function lines(texts: string[]): Nodes {
  return texts.flatMap((text, i) => (i === 0 ? inline(text) : [<br />, ...inline(text)]));
}

const HEADING = /^(#{1,4})\s+(.*)$/;
const BULLET = /^\s*[-*]\s+(.*)$/;
const NUMBERED = /^\s*\d{1,9}[.)]\s+(.*)$/;
const FENCE = /^```/;

function kindOf(line: string): "blank" | "fence" | "heading" | "bullet" | "number" | "text" {
  if (line.trim() === "") return "blank";
  if (FENCE.test(line)) return "fence";
  if (HEADING.test(line)) return "heading";
  if (BULLET.test(line)) return "bullet";
  return NUMBERED.test(line) ? "number" : "text";
}

function heading(line: string) {
  const [, marks = "", text = ""] = HEADING.exec(line) ?? [];
  // Under the titles of page and panel.
  if (marks.length === 1) return <h3>{inline(text)}</h3>;
  return marks.length === 2 ? <h4>{inline(text)}</h4> : <h5>{inline(text)}</h5>;
}

function items(texts: string[], mark: RegExp) {
  return texts.map((text) => <li>{inline(mark.exec(text)?.[1] ?? text)}</li>);
}

export function Markdown(props: { text: string }) {
  const all = props.text.replaceAll("\r\n", "\n").split("\n");
  const nodes: Nodes = [];
  for (let i = 0; i < all.length; ) {
    const kind = kindOf(all[i]!);
    let end = i + 1;
    if (kind === "fence") {
      while (end < all.length && !FENCE.test(all[end]!)) ++end;
      nodes.push(<pre>{all.slice(i + 1, end).join("\n")}</pre>);
      i = end + 1;
      continue;
    }
    if (kind !== "heading") while (end < all.length && kindOf(all[end]!) === kind) ++end;
    const block = all.slice(i, end);
    if (kind === "heading") nodes.push(heading(block[0]!));
    else if (kind === "bullet") nodes.push(<ul>{items(block, BULLET)}</ul>);
    else if (kind === "number") nodes.push(<ol>{items(block, NUMBERED)}</ol>);
    else if (kind === "text") nodes.push(<p>{lines(block)}</p>);
    i = end;
  }
  return <div class="markdown">{nodes}</div>;
}
