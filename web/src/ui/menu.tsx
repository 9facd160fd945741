// A button that opens a list of things to do; arrows walk, Enter takes, Esc closes.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export interface Item {
  name: string;
  act: () => void;
  checked?: boolean;
}

interface MenuProps {
  label: string;
  items: Item[];
  children?: ComponentChildren;
  class?: string;
  keepOpen?: boolean;
}

export function Menu(props: MenuProps) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    root.current?.querySelector<HTMLElement>("[role^=menuitem]")?.focus();
    const outside = (event: Event) => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    addEventListener("pointerdown", outside);
    return () => removeEventListener("pointerdown", outside);
  }, [open]);
  const close = () => {
    setOpen(false);
    root.current?.querySelector("button")?.focus();
  };
  const onKey = (event: KeyboardEvent) => {
    if (!open) return;
    const all = [...root.current!.querySelectorAll<HTMLElement>("[role^=menuitem]")];
    const at = all.indexOf(document.activeElement as HTMLElement);
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) all[(at + step + all.length) % all.length]?.focus();
    if (event.key === "Escape") close();
    if (step !== 0 || event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
    }
  };
  return (
    <div class="menu" ref={root} onKeyDown={onKey}>
      <button
        class={props.class ?? "plain"}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-label={props.children ? undefined : props.label}
        title={props.label}
        onClick={() => setOpen(!open)}
      >
        {props.children ?? "⋯"}
      </button>
      {open && (
        <div class="menu-list" role="menu" aria-label={props.label}>
          {props.items.map((item) => (
            <button
              key={item.name}
              role={item.checked === undefined ? "menuitem" : "menuitemcheckbox"}
              aria-checked={item.checked}
              onClick={() => {
                item.act();
                if (!props.keepOpen) close();
              }}
            >
              <span class="tick">{item.checked ? "✓" : ""}</span>
              {item.name}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
