// Light, dark, or as the system has it; and the page's colours for what is drawn on a canvas.
import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const KEY = "shirabe-theme";

export const theme = signal<Theme>((localStorage.getItem(KEY) as Theme | null) ?? "system");
// Grows when colours have changed, so that canvases are drawn again.
export const colours = signal(0);

effect(() => {
  if (theme.value === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset["theme"] = theme.value;
  localStorage.setItem(KEY, theme.value);
  colours.value = colours.peek() + 1;
});

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => ++colours.value);

export function nextTheme(): void {
  const order: Theme[] = ["system", "light", "dark"];
  theme.value = order[(order.indexOf(theme.value) + 1) % order.length]!;
}

// --accent → #0b5f6f
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)").matches;
