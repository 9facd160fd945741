// Every request of the page: relative to its own address, so that it works under any path of a
// proxy; with the token that its user gave, which stays in its tabs; errors as the server words
// them. Nothing else in the page fetches; in a report (src/report/) not even this does.
import { effect, signal } from "@preact/signals";

export interface ErrorDetail {
  field: string;
  reason: string;
  line?: number;
  column?: number;
}

export class ApiError extends Error {
  constructor(
    readonly status: number, // of HTTP; 0 = the server did not answer
    message: string,
    readonly details: ErrorDetail[] = [],
  ) {
    super(message);
  }
}

const TOKEN = "shirabe-token";

// "asked" once the server has refused a request for want of one.
export const token = signal<string>(sessionStorage.getItem(TOKEN) ?? "");
export const tokenAsked = signal<"" | "missing" | "refused">("");
export const reachable = signal(true);
// Grows when what was loaded may be out of date as a whole: another token, a server that is back.
export const session = signal(0);

// `shirabe ui` opens the page at #token=…: what stands behind # is sent to no server and is taken
// out of the address, and of the browser's history, at once; also where the page is open already.
export function takeTokenFromAddress(): void {
  const take = () => {
    const match = /^#token=([^&?]*)&?(.*)$/.exec(location.hash);
    if (!match) return;
    history.replaceState(null, "", `#${match[2] ?? ""}`);
    setToken(decodeURIComponent(match[1] ?? ""));
  };
  addEventListener("hashchange", take);
  take();
}

export function setToken(text: string): void {
  token.value = text.trim();
  if (token.value === "") sessionStorage.removeItem(TOKEN);
  else sessionStorage.setItem(TOKEN, token.value);
  tokenAsked.value = "";
  ++session.value;
}

function headers(more: Record<string, string> = {}): Record<string, string> {
  return token.value === "" ? more : { Authorization: `Bearer ${token.value}`, ...more };
}

async function failure(response: Response): Promise<ApiError> {
  if (response.status === 401) tokenAsked.value = token.value === "" ? "missing" : "refused";
  let message = `the server answered ${response.status} ${response.statusText}`;
  let details: ErrorDetail[] = [];
  try {
    const body = (await response.json()) as { message?: string; details?: ErrorDetail[] };
    message = body.message ?? message;
    details = body.details ?? [];
  } catch {
    // Not the server's own words: those of a proxy, perhaps.
  }
  return new ApiError(response.status, message, details);
}

export interface Ask {
  method?: string;
  body?: string;
  type?: string;
  headers?: Record<string, string>;
  abort?: AbortSignal | undefined;
}

let send = (path: string, how: RequestInit): Promise<Response> => fetch(path, how);

export function answerFrom(other: typeof send): void {
  send = other;
}

// The answer, whose status is below 300.
export async function ask(path: string, how: Ask = {}): Promise<Response> {
  let response: Response;
  try {
    response = await send(path, {
      method: how.method ?? "GET",
      headers: headers({ ...(how.type ? { "Content-Type": how.type } : {}), ...how.headers }),
      cache: "no-store",
      ...(how.body === undefined ? {} : { body: how.body }),
      ...(how.abort ? { signal: how.abort } : {}),
    });
  } catch (error) {
    if (how.abort?.aborted) throw error;
    reachable.value = false;
    throw new ApiError(0, "the server does not answer");
  }
  if (!reachable.peek()) {
    reachable.value = true;
    ++session.value;
  }
  if (!response.ok) throw await failure(response);
  return response;
}

export async function getJson<T>(path: string, abort?: AbortSignal): Promise<T> {
  return (await (await ask(path, { abort })).json()) as T;
}

export async function sendJson<T>(method: string, path: string, body?: unknown): Promise<T> {
  const how: Ask = { method };
  if (body !== undefined) {
    how.body = typeof body === "string" ? body : JSON.stringify(body);
    how.type = typeof body === "string" ? "application/yaml" : "application/json";
  }
  const response = await ask(path, how);
  const text = await response.text();
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

// All pages of a list; `each` gets them as they come.
export async function pages<T>(
  path: string,
  each: (items: T[], revision: number) => void,
  abort?: AbortSignal,
): Promise<void> {
  interface Page {
    items: T[];
    nextPageToken?: string;
    revision: number;
  }
  let next = "";
  do {
    const mark = path.includes("?") ? "&" : "?";
    const page: Page = await getJson(
      next === "" ? path : `${path}${mark}pageToken=${encodeURIComponent(next)}`,
      abort,
    );
    each(page.items, page.revision);
    next = page.nextPageToken ?? "";
  } while (next !== "");
}

// ---- events ------------------------------------------------------------------------------------

export interface Message {
  event: string;
  id: string;
  data: string;
}

// Reads the lines of text/event-stream; what is incomplete at the end is kept for the next part.
export function messageReader(): (text: string) => Message[] {
  let rest = "";
  let message: Message = { event: "message", id: "", data: "" };
  return (text) => {
    const found: Message[] = [];
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines.map((one) => one.replace(/\r$/, ""))) {
      if (line === "") {
        if (message.data !== "" || message.id !== "") found.push(message);
        message = { event: "message", id: "", data: "" };
        continue;
      }
      const colon = line.indexOf(":");
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (name === "event") message.event = value;
      if (name === "id") message.id = value;
      if (name === "data") message.data += (message.data === "" ? "" : "\n") + value;
    }
    return found;
  };
}

// The browser's own EventSource cannot send a token. Goes on after the last event when the
// connection was lost, until `abort`; ends by itself after an event "end". `opened` is called when
// the connection is open, but not where it goes on after an event.
export async function follow(
  path: string,
  each: (message: Message) => void,
  abort: AbortSignal,
  opened?: () => void,
): Promise<void> {
  let last = "";
  let missed = false; // there may have been changes that nothing will tell
  for (let pause = 500; !abort.aborted; pause = Math.min(pause * 2, 10_000)) {
    try {
      const more: Record<string, string> = last === "" ? {} : { "Last-Event-ID": last };
      const response = await ask(path, { headers: more, abort });
      if (missed) ++session.value;
      missed = false;
      if (last === "") opened?.();
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      const read = messageReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        pause = 500;
        for (const message of read(value)) {
          if (message.id !== "") last = message.id;
          if (message.event === "end") return;
          if (message.data !== "") each(message);
        }
      }
    } catch (error) {
      if (abort.aborted) return;
      const status = error instanceof ApiError ? error.status : 0;
      // 410: a store that has not reached this revision is another one: begin again.
      if (status === 410) last = "";
      else if (status === 400 || status === 403 || status === 404) throw error;
      else if (status === 401) return;
    }
    missed = last === "";
    await wait(pause, abort);
  }
}

export function wait(ms: number, abort?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    abort?.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

// While the server is away, looks for it; what waits for `session` is loaded again once it is back.
effect(() => {
  if (reachable.value) return;
  const timer = setInterval(() => void ask("version").catch(() => undefined), 1500);
  return () => clearInterval(timer);
});
