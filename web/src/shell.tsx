// What every page has around it: the bar at the top, the token that is asked for, notes, keys.
// Pages other than the list are loaded when they are opened.
import type { ComponentType } from "preact";
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { forgetRights, loadRights } from "./api/experiments.js";
import { ask, reachable, session, setToken, token, tokenAsked } from "./api/http.js";
import { shownBindings, useKeys } from "./keys.js";
import { usePart } from "./load.js";
import { Experiments } from "./pages/experiments.js";
import { recording } from "./recording.js";
import { nextTheme, theme } from "./theme.js";
import { Dialog, Notes, QuestionDialog } from "./ui/dialog.js";
import { go, link, place } from "./url.js";

interface PageModule {
  default: ComponentType;
}

const PAGES: Record<string, () => Promise<PageModule>> = {
  e: () => import("./pages/experiment.js"),
  t: () => import("./pages/trial.js"),
  compare: () => import("./pages/compare.js"),
  capacity: () => import("./pages/capacity.js"),
  new: () => import("./pages/create.js"),
};

const helpShown = signal(false);
export const userName = signal("");

// A page of its own file. One that cannot be loaded though the server answers is of another version
// of it: the whole page must be loaded again.
function Lazy(props: { name: string }) {
  const loaded = usePart(props.name, PAGES[props.name]);
  if (loaded === undefined) return <main class="page" aria-busy="true" />;
  if (loaded.value === null) {
    return (
      <main class="page">
        <h1>This page could not be loaded</h1>
        <p>The server may have been replaced by another version meanwhile.</p>
        <button onClick={() => location.reload()}>Load again</button>
      </main>
    );
  }
  const Page = loaded.value.default;
  return <Page />;
}

function NotFound() {
  return (
    <main class="page">
      <h1>There is no such page</h1>
      <p>
        <a href={link([])}>All experiments</a>
      </p>
    </main>
  );
}

function Bar() {
  const first = place.value.path[0] ?? "";
  const links = [
    ["", "Experiments"],
    ["compare", "Compare"],
    ["capacity", "Capacity"],
    ["new", "New experiment"],
  ] as const;
  const at = first === "e" || first === "t" ? "" : first;
  const report = recording();
  return (
    <header class="bar">
      <a class="skip" href="#main" onClick={skipToMain}>
        Skip to content
      </a>
      <a class="brand" href={link([])}>
        <svg viewBox="0 0 32 32" aria-hidden="true">
          <path d="M4 22c5 0 5-13 9-13s4.5 10 8 10s3.5-6 7-6" />
          <circle cx="13" cy="9" r="3.2" />
        </svg>
        Shirabe
      </a>
      {report ? <report.Bar /> : (
        <nav aria-label="Pages">
          {links.map(([path, name]) => (
            <a
              key={path}
              href={link(path === "" ? [] : [path])}
              aria-current={path === at ? "page" : undefined}
            >
              {name}
            </a>
          ))}
        </nav>
      )}
      <div class="bar-end">
        {!reachable.value && (
          <span class="away" role="alert">
            The server does not answer; trying again
          </span>
        )}
        {userName.value !== "" && <span class="user">{userName.value}</span>}
        {token.value !== "" && (
          <button class="plain" onClick={() => setToken("")}>
            Sign out
          </button>
        )}
        <button class="plain" onClick={nextTheme} title={`Colours: ${theme.value}`}>
          <span aria-hidden="true">{{ system: "◐", light: "○", dark: "●" }[theme.value]}</span>
          <span class="unseen">Colours: {theme.value}</span>
        </button>
        <button class="plain" onClick={() => (helpShown.value = true)} title="Keys (?)">
          <span aria-hidden="true">?</span>
          <span class="unseen">Keys</span>
        </button>
      </div>
    </header>
  );
}

function skipToMain(event: Event): void {
  event.preventDefault();
  const main = document.querySelector<HTMLElement>("main");
  main?.setAttribute("tabindex", "-1");
  main?.focus();
}

function TokenDialog() {
  const [text, setText] = useState("");
  if (tokenAsked.value === "") return null;
  const submit = (event: Event) => {
    event.preventDefault();
    if (text.trim() !== "") setToken(text);
    setText("");
  };
  return (
    <main class="page narrow">
      <form class="panel token" onSubmit={submit}>
        <h1>This server asks for a token</h1>
        {tokenAsked.value === "refused" && (
          <p class="problem" role="alert">
            The server does not know this token, or no longer.
          </p>
        )}
        <p>
          <code>shirabe serve</code> says in which file it is; <code>shirabe ui</code> opens this
          page with it. It is kept for the tabs of this page only.
        </p>
        <label>
          Token
          <input
            type="password"
            autocomplete="off"
            value={text}
            autofocus
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <button class="primary">Sign in</button>
      </form>
    </main>
  );
}

function HelpDialog() {
  if (!helpShown.value) return null;
  return (
    <Dialog title="Keys" onClose={() => (helpShown.value = false)}>
      <table class="keys">
        <tbody>
          {shownBindings().map((one) => (
            <tr key={one.key}>
              <th scope="row">
                <kbd>{one.key}</kbd>
              </th>
              <td>{one.help}</td>
            </tr>
          ))}
          <tr>
            <th scope="row">
              <kbd>Esc</kbd>
            </th>
            <td>close, or leave a field</td>
          </tr>
        </tbody>
      </table>
    </Dialog>
  );
}

function useCaller(): void {
  const epoch = session.value;
  useEffect(() => {
    forgetRights();
    loadRights("").then(
      (rights) => (userName.value = rights.name),
      () => (userName.value = ""),
    );
  }, [epoch]);
}

export function Shell() {
  useCaller();
  useKeys([
    { key: "?", help: "this list", act: () => (helpShown.value = true) },
    { key: "g", help: "all experiments", act: () => go(link([])) },
    ...(recording() ? [] : [
      { key: "c", help: "new experiment", act: () => go(link(["new"])) },
    ]),
    { key: "t", help: "light, dark, or as the system has it", act: nextTheme },
  ]);
  useEffect(() => void ask("version").catch(() => undefined), []);
  const first = place.value.path[0] ?? "";
  return (
    <>
      <Bar />
      {tokenAsked.value !== "" ? (
        <TokenDialog />
      ) : first === "" ? (
        <Experiments />
      ) : PAGES[first] && (!recording() || first === "e" || first === "t") ? (
        <Lazy name={first} />
      ) : (
        <NotFound />
      )}
      <HelpDialog />
      <QuestionDialog />
      <Notes />
    </>
  );
}
