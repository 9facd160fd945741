// The filter that all panels of an experiment share, and what is selected.
import { describe, printBrush } from "../brush.js";
import { plural } from "../format.js";
import { brushes, shownOf, selectTrials, useShared } from "../pages/context.js";
import { link, param, setParams } from "../url.js";
import type { ComponentChildren } from "preact";

export function FilterBar(props: { children?: ComponentChildren; shown?: string }) {
  const shared = useShared();
  const filter = param("filter");
  const { key, selected } = shared;
  return (
    <div class="filterbar">
      <input
        type="search"
        placeholder="Filter the trials: state=Succeeded, lr<0.01"
        aria-label="Filter the trials"
        aria-invalid={shared.problem !== ""}
        value={filter}
        onInput={(event) => setParams({ filter: event.currentTarget.value })}
      />
      {brushes().map((brush) => (
        <button
          key={brush.column}
          class="chip chosen"
          title="chosen along an axis; click to take it back"
          onClick={() => setParams({
            brush: brushes().filter((one) => one.column !== brush.column).map(printBrush),
          })}
        >
          {describe(brush)} ✕
        </button>
      ))}
      <span class="shown">{props.shown ?? shownOf(shared.rows.length, shared.data)}</span>
      {selected.size > 0 && (
        <>
          <span class="shown">{plural(selected.size, "trial")} selected</span>
          {selected.size >= 2 && selected.size <= 8 && (
            <a
              class="button"
              href={link(["compare"], {
                t: [...selected].map((n) => `${key.ns}/${key.name}/${n}`),
              })}
            >
              Compare
            </a>
          )}
          <button class="plain" onClick={() => selectTrials([])}>
            Clear
          </button>
        </>
      )}
      <div class="tools">{props.children}</div>
      {shared.problem !== "" && (
        <p class="problem" role="alert">
          {shared.problem}
        </p>
      )}
    </div>
  );
}
