// The address is the one store of what a view shows: #/e/NAMESPACE/NAME/TAB?filter=…&sort=…
// Everything behind the # stays in the browser, so the page works under any path of any proxy, and
// an address that is sent to someone shows them the same view.
import { computed, signal } from "@preact/signals";

export interface Place {
  path: string[];
  params: URLSearchParams;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function parsePlace(hash: string): Place {
  const text = hash.replace(/^#\/?/, "");
  const mark = text.indexOf("?");
  const path = (mark < 0 ? text : text.slice(0, mark)).split("/").filter((part) => part !== "");
  return {
    path: path.map(decoded),
    params: new URLSearchParams(mark < 0 ? "" : text.slice(mark + 1)),
  };
}

export type Params = Record<string, string | string[] | number | undefined>;

// The address of a view, for links. Parameters that are undefined or "" are left out.
export function link(path: (string | number)[], params: Params = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== "") query.append(name, String(one));
    }
  }
  const text = query.toString();
  const parts = path.map((part) => encodeURIComponent(String(part))).join("/");
  return `#/${parts}${text === "" ? "" : "?" + text}`;
}

export const place = signal<Place>({ path: [], params: new URLSearchParams() });

export function followAddress(): void {
  const read = () => {
    const { path, params } = parsePlace(location.hash);
    const [first, ns = "", name = "", tab, trial = ""] = path;
    // The trials of an experiment lead to each of them.
    if (first === "e" && tab === "trials" && /^\d+$/.test(trial)) {
      const query = params.toString();
      const hash = link(["t", ns, name, ...path.slice(4)]) + (query === "" ? "" : `?${query}`);
      history.replaceState(null, "", hash);
      place.value = parsePlace(hash);
    } else {
      place.value = { path, params };
    }
  };
  addEventListener("hashchange", read);
  addEventListener("popstate", read);
  read();
}

export function param(name: string): string {
  return place.value.params.get(name) ?? "";
}

// A signal of one parameter alone, so that what reads it is not drawn again for the others.
export function paramSignal(name: string) {
  return computed(() => place.value.params.get(name) ?? "");
}

// Changes parameters of the view that is shown, without a step of the browser's history for each
// letter that is typed.
export function setParams(changes: Params, step = false): void {
  const next = new URLSearchParams(place.peek().params);
  for (const [name, value] of Object.entries(changes)) {
    next.delete(name);
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== "") next.append(name, String(one));
    }
  }
  const query = next.toString();
  const path = place.peek().path.map(encodeURIComponent).join("/");
  const hash = `#/${path}${query === "" ? "" : "?" + query}`;
  if (step) history.pushState(null, "", hash);
  else history.replaceState(null, "", hash);
  place.value = parsePlace(hash);
}

export function go(href: string): void {
  location.hash = href.replace(/^#/, "");
}
