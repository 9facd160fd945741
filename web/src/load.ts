// Loading what a view shows, and loading it again when the server says that it has changed.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { follow, session } from "./api/http.js";
import type { Key } from "./api/experiments.js";
import { pathOf } from "./api/experiments.js";
import { recording } from "./recording.js";

export interface Loaded<T> {
  value: T | undefined; // of the last time that it worked
  error: Error | undefined;
  again: () => void;
}

// Of one view at the same time: the one that runs, and one for what has changed since it began.
const MOST_LOADS = 2;

// Loads when `id` changes ("" = nothing to load), and when the server is another or back. `watch`:
// what useChanges returned, where changes of what is loaded are followed. again() leaves a load that
// runs to its end: where changes come faster than they load, they are shown all the same.
export function useLoad<T>(
  id: string, load: (abort: AbortSignal) => Promise<T>, watch = 1,
): Loaded<T> {
  const [state, setState] = useState<{ id: string; value?: T; error?: Error }>({ id });
  const latest = useRef(load);
  latest.current = load;
  const start = useRef<() => void>(() => undefined);
  const epoch = session.value;
  useEffect(() => {
    if (id === "" || watch === 0) return;
    const abort = new AbortController();
    let begun = 0, shown = 0, running = 0;
    let waiting = false; // another is wanted once one has ended
    // What an older load says after a newer one is not shown.
    const finish = (mine: number, show: () => void) => {
      if (abort.signal.aborted) return;
      running -= 1;
      if (mine > shown) show();
      shown = Math.max(shown, mine);
      if (waiting) start.current();
    };
    start.current = () => {
      waiting = running === MOST_LOADS;
      if (waiting) return;
      running += 1;
      const mine = ++begun;
      latest.current(abort.signal).then(
        (value) => finish(mine, () => setState({ id, value })),
        (error: Error) => finish(mine, () => (
          setState((old) => (old.id === id ? { ...old, error } : { id, error })))),
      );
    };
    start.current();
    return () => {
      start.current = () => undefined;
      abort.abort();
    };
  }, [id, epoch, watch]);
  const current = state.id === id ? state : { id };
  const again = useRef(() => start.current()).current;
  return { value: current.value, error: current.error, again };
}

export interface Part<T> {
  name: string;
  value: T | null; // null: it could not be loaded
}

// A part of the page that is a file of its own, asked for as soon as its name is known; once more
// when the server is back.
export function usePart<T>(name: string, load: (() => Promise<T>) | undefined) {
  const [part, setPart] = useState<Part<T>>();
  const epoch = session.value;
  // Two requests for one file are one to the browser: a second that comes before the first has
  // failed fails with it. So it waits.
  const asked = useRef<Promise<void>>(Promise.resolve());
  useLayoutEffect(() => {
    if (!load || (part?.name === name && part.value !== null)) return;
    let stale = false;
    const set = (value: T | null) => {
      if (!stale) setPart({ name, value });
    };
    asked.current = asked.current.then(load).then(set, () => set(null));
    return () => {
      stale = true;
    };
  }, [name, epoch]);
  return part?.name === name ? part : undefined;
}

export interface Change {
  kind: string;
  namespace: string;
  experiment: string;
  trial?: string;
  revision: number;
}

// A stream that takes longer to open, as behind a proxy that buffers it, does not hold up the page.
const OPENING_TIMEOUT_MS = 1000;

// Calls back after changes, with all of them since the last time, at most once in `pause` ms; not
// while the page is hidden: then once when it is shown again. Returns 0 until the stream is open:
// what is loaded then, and again where the number changes, is followed without a gap.
export function useChanges(
  scope: Key | null,
  back: (changes: Change[]) => void,
  pause = 500,
): number {
  const latest = useRef(back);
  latest.current = back;
  const path = scope === null ? "api/v1/watch" : `${pathOf(scope)}/watch`;
  const epoch = session.value;
  const stream = `${path} ${epoch}`;
  const [ready, setReady] = useState({ stream: "", count: 0 });
  useEffect(() => {
    const abort = new AbortController();
    let waiting: Change[] = [];
    let timer = 0;
    let last = 0;
    const flush = () => {
      timer = 0;
      if (document.hidden || waiting.length === 0) return;
      last = Date.now();
      const changes = waiting;
      waiting = [];
      latest.current(changes);
    };
    const schedule = () => {
      if (timer === 0) timer = setTimeout(flush, Math.max(0, last + pause - Date.now()));
    };
    document.addEventListener("visibilitychange", schedule);
    const proceed = () => {
      clearTimeout(opening);
      if (!abort.signal.aborted) setReady(({ count }) => ({ stream, count: count + 1 }));
    };
    const opening = setTimeout(proceed, OPENING_TIMEOUT_MS);
    // Where it ends, what is followed was deleted, or is not the user's: what is loaded says so.
    follow(
      path,
      (message) => {
        if (waiting.length < 10_000) waiting.push(JSON.parse(message.data) as Change);
        schedule();
      },
      abort.signal,
      proceed,
    ).then(proceed, proceed);
    return () => {
      abort.abort();
      clearTimeout(opening);
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", schedule);
    };
  }, [path, epoch]);
  return ready.stream === stream ? ready.count : 0;
}

// The time now, again every `ms` while something on the page grows older; in a report nothing does.
export function useNow(ms: number): number {
  const made = recording()?.made;
  const [now, setNow] = useState(made ?? Date.now());
  useEffect(() => {
    if (made !== undefined) return;
    const timer = setInterval(() => document.hidden || setNow(Date.now()), ms);
    return () => clearInterval(timer);
  }, [ms]);
  return now;
}
