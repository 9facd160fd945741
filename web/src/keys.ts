// Keys that work everywhere on a page, and what they do, for the list that ? shows. A page says
// what it answers to while it is shown.
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

export interface Binding {
  key: string;
  help: string;
  act: () => void;
}

const bindings = signal<Binding[]>([]);

// What a key does is what it did mean in the last drawing, even if the next key comes at once.
export function useKeys(own: Binding[]): void {
  const latest = useRef(own);
  latest.current = own;
  const names = own.map((one) => one.key).join(" ");
  useLayoutEffect(() => {
    const listed = own.map((one): Binding => ({
      ...one, act: () => latest.current.find((now) => now.key === one.key)?.act(),
    }));
    bindings.value = [...bindings.peek(), ...listed];
    return () => (bindings.value = bindings.peek().filter((one) => !listed.includes(one)));
  }, [names]);
}

export function shownBindings(): Binding[] {
  const seen = new Map<string, Binding>();
  for (const one of bindings.value) seen.set(one.key, one);
  return [...seen.values()];
}

function isTyping(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  return !!element?.closest?.("input, textarea, select, [contenteditable]");
}

export function listenToKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]")) return;
    // What is in a dialog that has just been closed keeps the focus until the page is drawn again.
    const focused = event.target as HTMLElement;
    const target = focused.closest?.("dialog") ? document.body : focused;
    if (isTyping(target)) {
      if (event.key === "Escape") target.blur();
      return;
    }
    // Enter and the blank are the browser's where something else has the focus.
    const onControl = target.closest?.("a, button, summary");
    if (onControl && (event.key === "Enter" || event.key === " ")) return;
    const found = bindings.peek().findLast((one) => one.key === event.key);
    if (!found) return;
    event.preventDefault();
    found.act();
  });
}
