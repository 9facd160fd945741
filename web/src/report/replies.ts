// The replies of a server as a report holds them (cmd/verbs/page/report_file.h): by the path that
// was asked, compressed, in base64. What the page asks is found by the same path; what only says
// how much is wanted (a page's size, a picture's width, the trials of curves) is not compared.

export interface ReportData {
  format: number;
  made: number;
  program: string;
  namespace: string;
  experiment: string;
  trials: number;
  trialPages: number;
  leftOut: string[];
  replies: [path: string, type: string, body: number][];
  bodies: string[];
}

export const FORMAT = 1;
const IGNORED = ["pageSize", "fields", "px", "trials", "scale", "since", "follow", "offset"];

// The path with what counts of its query, in a fixed order.
export function keyOf(path: string): string {
  const mark = path.indexOf("?");
  if (mark < 0) return path;
  const query = new URLSearchParams(path.slice(mark + 1));
  for (const name of IGNORED) query.delete(name);
  if (query.get("axis") === "step") query.delete("axis");
  query.sort();
  const text = query.toString();
  return path.slice(0, mark) + (text === "" ? "" : `?${text}`);
}

function json(body: unknown, status = 200): Response {
  return new Response(JSON.stringify(body), {
    status, headers: { "Content-Type": "application/json" },
  });
}

async function inflated(base64: string): Promise<ArrayBuffer> {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser is too old for the report: Chrome 94, Firefox 113 and " +
      "Safari 16.4 can read it");
  }
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

interface Surface {
  axes: unknown[];
  mean: number[];
  low: number[];
  high: number[];
}

// The path of two parameters with the two in the other order.
function turned(path: string): string {
  const [target, query = ""] = path.split("?");
  const names = new URLSearchParams(query);
  const [first, second] = [names.get("parameter"), names.get("with")];
  if (first === null || second === null) return path;
  return `${target}?${new URLSearchParams({ parameter: second, with: first })}`;
}

// Of two axes the second varies fastest; here they change places.
export function swapped<T extends Surface>(surface: T): T {
  if (surface.axes.length !== 2) return surface;
  const [first, second] = surface.axes as { values: unknown[] }[];
  const [m, n] = [first!.values.length, second!.values.length];
  const turn = (values: number[]) =>
    values.map((_, at) => values[(at % m) * n + Math.floor(at / m)]!);
  return {
    ...surface, axes: [second, first],
    mean: turn(surface.mean), low: turn(surface.low), high: turn(surface.high),
  };
}

export class Replies {
  private readonly known: Map<string, { type: string; body: number }>;

  constructor(private readonly data: ReportData) {
    this.known = new Map(data.replies.map(([path, type, body]) => [keyOf(path), { type, body }]));
  }

  // As fetch answers; 404 for what the report does not hold, in words.
  async answer(path: string, method: string): Promise<Response> {
    if (method !== "GET") return json({ message: "a report changes nothing" }, 405);
    const found = await this.find(keyOf(path));
    if (found) return /\?(.*&)?follow=true/.test(path) ? eventsOf(await found.text()) : found;
    return (await this.made(path)) ?? json({ message: this.missing(path) }, 404);
  }

  // Whether the reply to this path is there, perhaps the other way round.
  holds(path: string): boolean {
    return this.known.has(keyOf(path)) || this.known.has(keyOf(turned(path)));
  }

  private async find(key: string): Promise<Response | null> {
    const found = this.known.get(key);
    if (!found) return null;
    const bytes = await inflated(this.data.bodies[found.body]!);
    return new Response(bytes, { headers: { "Content-Type": found.type } });
  }

  private get base(): string {
    const { namespace, experiment } = this.data;
    return `api/v1/namespaces/${encodeURIComponent(namespace)}/experiments/` +
      encodeURIComponent(experiment);
  }

  // What follows from other replies.
  private async made(path: string): Promise<Response | null> {
    const [target, query = ""] = path.split("?");
    if (target === "api/v1/rights") {
      const namespace = new URLSearchParams(query).get("namespace") ?? this.data.namespace;
      const none = { create: false, change: false, delete: false };
      return json({ name: "", namespace, read: true, ...none });
    }
    if (target === "api/v1/experiments") {
      const one = await this.find(this.base);
      return one && json({ items: [await one.json()], revision: 0 });
    }
    if (target === `${this.base}/partial-dependence`) {
      const found = await this.find(keyOf(turned(path)));
      return found && json(swapped((await found.json()) as Surface));
    }
    return null;
  }

  private missing(path: string): string {
    const { trials, trialPages, experiment } = this.data;
    const trial = /\/trials\/(\d+)/.exec(path)?.[1];
    if (path.includes("/log")) {
      return `This report has no log of it; shirabe report ${experiment} --logs adds the logs.`;
    }
    if (trial && !this.known.has(`${this.base}/trials/${trial}`)) {
      return `This report has pages of ${trialPages} of ${trials} trials, of trial ${trial} ` +
        `only its row in the table; shirabe report ${experiment} --trials N adds more.`;
    }
    return "This report does not hold that.";
  }
}

// A log that has ended, as the server streams it.
function eventsOf(text: string): Response {
  const log = text === "" ? "" : `event: log\ndata: ${JSON.stringify({ text })}\n\n`;
  return new Response(`${log}event: end\ndata: {}\n\n`);
}
