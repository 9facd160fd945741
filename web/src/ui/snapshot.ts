// A panel as a file: its title and all that it shows (canvases, drawings, text, coloured boxes),
// each where it stands on the page, as one SVG without styles or scripts; and that as a PNG.
import { fitted } from "./fit.js";

const SVG = "http://www.w3.org/2000/svg";
// What is there to be used, not to be seen, and what only some see.
const LEFT_OUT = ".tools, .unseen, .tip, .menu, dialog, input, select, textarea, script";
const PRESENTATION = [
  "stroke-width", "opacity", "font-size", "font-family", "font-weight", "text-anchor",
  "stroke-dasharray", "stroke-linejoin", "stroke-linecap", "paint-order", "dominant-baseline",
];

interface Paint {
  colour: string; // in a form that every program reads: #rrggbb
  opacity: number;
}

interface Sheet {
  svg: SVGSVGElement;
  left: number; // of the panel, in pixels of the window
  top: number;
  right: number; // of what reaches the furthest
  bottom: number;
  pen: CanvasRenderingContext2D; // measures text, reads colours
  paints: Map<string, Paint>;
}

// Without characters that XML cannot hold.
function xmlText(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "�");
}

function paintOf(sheet: Sheet, text: string): Paint {
  const known = sheet.paints.get(text);
  if (known) return known;
  const { pen } = sheet;
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = "#00000000";
  pen.fillStyle = text; // what is no colour changes nothing
  pen.fillRect(0, 0, 1, 1);
  const [r = 0, g = 0, b = 0, a = 0] = pen.getImageData(0, 0, 1, 1).data;
  const hex = [r, g, b].map((one) => one.toString(16).padStart(2, "0")).join("");
  const paint = { colour: `#${hex}`, opacity: a / 255 };
  sheet.paints.set(text, paint);
  return paint;
}

function add(
  sheet: Sheet, name: string, attributes: Record<string, string | number>, to: Element = sheet.svg,
): SVGElement {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, typeof value === "number" ? String(+value.toFixed(2)) : value);
  }
  to.append(element);
  return element;
}

function reach(sheet: Sheet, box: DOMRect): { x: number; y: number } {
  sheet.right = Math.max(sheet.right, box.right);
  sheet.bottom = Math.max(sheet.bottom, box.bottom);
  return { x: box.left - sheet.left, y: box.top - sheet.top };
}

// ---- the parts ---------------------------------------------------------------------------------

function addCanvas(sheet: Sheet, canvas: HTMLCanvasElement): void {
  const box = canvas.getBoundingClientRect();
  if (canvas.width === 0 || canvas.height === 0 || box.width === 0) return;
  add(sheet, "image", {
    ...reach(sheet, box), width: box.width, height: box.height, preserveAspectRatio: "none",
    href: canvas.toDataURL(),
  });
}

// A drawing, with what the page's styles give its parts written into them.
function addDrawing(sheet: Sheet, drawing: SVGSVGElement): void {
  const clone = drawing.cloneNode(true) as SVGSVGElement;
  const from = [drawing, ...drawing.querySelectorAll<SVGElement>("*")];
  const to = [clone, ...clone.querySelectorAll<SVGElement>("*")];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    const copy = to[i]!;
    for (const name of ["class", "style", "role", "tabindex"]) copy.removeAttribute(name);
    if (element.tagName === "title" || element.tagName === "foreignObject") return;
    for (const name of PRESENTATION) copy.setAttribute(name, style.getPropertyValue(name));
    for (const name of ["fill", "stroke"]) {
      const value = style.getPropertyValue(name);
      const paint = paintOf(sheet, value === "none" ? "transparent" : value);
      copy.setAttribute(name, paint.opacity === 0 ? "none" : paint.colour);
      const own = Number(style.getPropertyValue(`${name}-opacity`) || 1);
      copy.setAttribute(`${name}-opacity`, String(+(paint.opacity * own).toFixed(3)));
    }
    if (style.visibility === "hidden") copy.setAttribute("visibility", "hidden");
  });
  for (const one of clone.querySelectorAll("foreignObject")) one.remove();
  const box = drawing.getBoundingClientRect();
  const { x, y } = reach(sheet, box);
  for (const [name, value] of Object.entries({ x, y, width: box.width, height: box.height })) {
    clone.setAttribute(name, String(value));
  }
  clone.setAttribute("overflow", "visible");
  sheet.svg.append(clone);
  for (const one of drawing.querySelectorAll("foreignObject > *")) walk(sheet, one);
}

// The colour behind an element, or its band of colours.
function addBox(sheet: Sheet, element: Element, style: CSSStyleDeclaration): void {
  const box = element.getBoundingClientRect();
  if (box.width === 0 || box.height === 0) return;
  const stops = /^linear-gradient\(to right/.test(style.backgroundImage)
    ? (style.backgroundImage.match(/(?:rgba?|color)\([^)]*\)/g) ?? []) : [];
  const paint = paintOf(sheet, style.backgroundColor);
  if (stops.length === 0 && paint.opacity === 0) return;
  let fill = paint.colour;
  if (stops.length > 0) {
    const id = `band-${sheet.svg.querySelectorAll("linearGradient").length + 1}`;
    const band = add(sheet, "linearGradient", { id });
    stops.forEach((stop, i) => add(sheet, "stop", {
      offset: i / Math.max(1, stops.length - 1), "stop-color": paintOf(sheet, stop).colour,
    }, band));
    fill = `url(#${id})`;
  }
  add(sheet, "rect", {
    ...reach(sheet, box), width: box.width, height: box.height, fill,
    "fill-opacity": stops.length > 0 ? 1 : paint.opacity,
    rx: Math.min(parseFloat(style.borderTopLeftRadius) || 0, box.height / 2, box.width / 2),
  });
}

interface TextLine {
  text: string;
  box: DOMRect;
}

// The lines of a text as the browser breaks them.
function linesOf(node: Text): TextLine[] {
  const lines: TextLine[] = [];
  const range = document.createRange();
  for (const match of node.data.matchAll(/\S+\s*/g)) {
    range.setStart(node, match.index);
    range.setEnd(node, match.index + match[0].trimEnd().length);
    const box = range.getBoundingClientRect();
    if (box.width === 0) continue;
    const last = lines.at(-1);
    if (last && Math.abs(last.box.top - box.top) < box.height / 2) last.text += match[0];
    else lines.push({ text: match[0], box });
  }
  return lines;
}

function addText(sheet: Sheet, node: Text): void {
  const parent = node.parentElement!;
  const style = getComputedStyle(parent);
  const paint = paintOf(sheet, style.color);
  const { pen } = sheet;
  pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const room = style.overflowX === "hidden" && parent.scrollWidth > parent.clientWidth
    ? parent.getBoundingClientRect().width : Infinity;
  for (const { text, box } of linesOf(node)) {
    const { x, y } = reach(sheet, box);
    const { fontBoundingBoxAscent: up, fontBoundingBoxDescent: down } = pen.measureText(text);
    const line = add(sheet, "text", {
      x, y: y + (box.height * up) / (up + down), fill: paint.colour, "fill-opacity": paint.opacity,
      "font-size": style.fontSize, "font-family": style.fontFamily,
      "font-weight": style.fontWeight,
    });
    const shown = text.trimEnd().replace(/\s+/g, " ");
    line.textContent = xmlText(room === Infinity ? shown : fitted(pen, shown, room));
  }
}

function walk(sheet: Sheet, node: Node): void {
  if (node.nodeType === Node.TEXT_NODE) return addText(sheet, node as Text);
  if (!(node instanceof Element) || node.matches(LEFT_OUT)) return;
  const style = getComputedStyle(node);
  if (style.display === "none" || style.visibility === "hidden") return;
  if (node instanceof HTMLCanvasElement) return addCanvas(sheet, node);
  if (node instanceof SVGSVGElement) return addDrawing(sheet, node);
  if (node instanceof HTMLButtonElement && !node.closest("foreignObject")) return;
  addBox(sheet, node, style);
  for (const child of node.childNodes) walk(sheet, child);
}

// ---- files -------------------------------------------------------------------------------------

export interface Snapshot {
  text: string; // SVG
  width: number;
  height: number;
}

// The room of buttons that are left out is closed meanwhile; nothing of that is painted.
export function snapshot(panel: HTMLElement, title: string): Snapshot {
  const tools = [...panel.querySelectorAll<HTMLElement>("header .tools")];
  for (const one of tools) one.style.display = "none";
  try {
    return drawn(panel, title);
  } finally {
    for (const one of tools) one.style.display = "";
  }
}

function drawn(panel: HTMLElement, title: string): Snapshot {
  const box = panel.getBoundingClientRect();
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true })!;
  const sheet: Sheet = {
    svg: document.createElementNS(SVG, "svg"), left: box.left, top: box.top, right: box.right,
    bottom: 0, pen, paints: new Map(),
  };
  add(sheet, "title", {}).textContent = xmlText(title);
  const ground = add(sheet, "rect", {});
  for (const child of panel.childNodes) walk(sheet, child);
  const width = Math.ceil(sheet.right - box.left);
  const height = Math.ceil(sheet.bottom - box.top) + 14;
  const paint = paintOf(sheet, getComputedStyle(panel).backgroundColor);
  for (const [name, value] of Object.entries({ width, height, fill: paint.colour })) {
    ground.setAttribute(name, String(value));
    if (name !== "fill") sheet.svg.setAttribute(name, String(value));
  }
  sheet.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return { text: new XMLSerializer().serializeToString(sheet.svg), width, height };
}

export async function asPng({ text, width, height }: Snapshot): Promise<Blob> {
  const scale = Math.max(2, devicePixelRatio);
  const image = new Image(width * scale, height * scale);
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [width * scale, height * scale];
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) => canvas.toBlob((blob) =>
      blob ? resolve(blob) : reject(new Error("the picture is too large for this browser"))));
  } finally {
    URL.revokeObjectURL(url);
  }
}
