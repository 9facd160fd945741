// All experiments that the user may see: how far, how good, how dear, and what each waits for.
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Action, Key } from "../api/experiments.js";
import { act, idOf, loadRights, remove, rightsIn } from "../api/experiments.js";
import { session } from "../api/http.js";
import type { Summaries, Summary } from "../api/summaries.js";
import { keyOfSummary, readSummaries } from "../api/summaries.js";
import type { Field } from "../filter.js";
import { FilterError, chooser, commandFilter, compare, isCommandFilter } from "../filter.js";
import { age, count, money, plural, shellWord, short } from "../format.js";
import { useKeys } from "../keys.js";
import { useChanges, useLoad, useNow } from "../load.js";
import { completed, countsIn, isEndState, lookOf, whyOf } from "../state.js";
import type { Column } from "../ui/grid.js";
import { Grid } from "../ui/grid.js";
import { confirmed, note, noteError } from "../ui/dialog.js";
import { Menu } from "../ui/menu.js";
import { Command, Empty } from "../ui/panel.js";
import { Progress } from "../ui/progress.js";
import { State } from "../ui/state.js";
import { go, link, param, setParams } from "../url.js";

function idIn(summary: Summary): string {
  return idOf(keyOfSummary(summary));
}

// It grows at a known rate until the server says otherwise.
function costNow(summary: Summary, now: number): number {
  const hours = Math.max(0, now - Date.parse(summary.asOf)) / 3_600_000;
  return summary.cost + (summary.costPerHour > 0 ? summary.costPerHour * hours : 0);
}

function fieldsOf(all: Summary[], now: number): Field[] {
  const field = (name: string, at: (one: Summary) => string | number, text = false): Field => ({
    name, text, at: (i) => at(all[i]!),
  });
  return [
    { ...field("name", (one) => one.name, true), found: (i) => (all[i]!.tags ?? []).join("\n") },
    field("namespace", (one) => one.namespace, true),
    field("state", (one) => one.state, true),
    field("algorithm", (one) => one.algorithm, true),
    field("best", (one) => one.best?.value ?? NaN),
    field("trials", (one) => one.trials),
    field("progress", (one) => completed(countsIn(one)) / (one.maxTrials ?? Infinity)),
    field("running", (one) => one.trialsRunning),
    field("failed", (one) => one.trialsFailed),
    field("age", (one) => (now - Date.parse(one.created ?? "")) / 1000),
    field("cost", (one) => costNow(one, now)),
    { ...field("preemptions", (one) => one.preemptions), also: ["Preempted"] },
  ];
}

interface Chosen {
  rows: number[];
  problem: string;
}

function choose(all: Summary[], filter: string, sort: string, now: number): Chosen {
  const fields = fieldsOf(all, now);
  let rows = all.map((_, i) => i);
  let problem = "";
  try {
    rows = rows.filter(chooser(filter, fields));
  } catch (error) {
    if (!(error instanceof FilterError)) throw error;
    problem = error.message;
  }
  const descending = sort.startsWith("~");
  const by = fields.find((one) => one.name === sort.replace("~", ""));
  if (by) rows.sort((a, b) => compare(by.at(a), by.at(b), descending));
  return { rows, problem };
}

const ACTIONS: [Action | "delete", string][] = [
  ["pause", "Pause"], ["resume", "Resume"], ["stop", "Stop"], ["delete", "Delete"],
];

// Whether there would be any sense in it now.
function applies(action: Action | "delete", { state }: Summary): boolean {
  if (action === "delete") return true;
  if (isEndState(state) || state === "Stopping") return false;
  return action === "resume" ? state === "Paused" : action === "pause" ? state !== "Paused" : true;
}

function mayDo(action: Action | "delete", one: Summary): boolean {
  const rights = rightsIn(one.namespace);
  return action === "delete" ? rights.delete : rights.change;
}

const WARNINGS: Partial<Record<Action | "delete", string>> = {
  stop: "Running trials save and stop. An experiment that was stopped does not go on.",
  delete: "Their trials end at once; records, logs and checkpoints are removed for good.",
};

// Does it to each of them, and says once how that went.
export async function doAll(action: Action | "delete", chosen: Key[]): Promise<void> {
  const names = chosen.map((one) => one.name);
  const what = ACTIONS.find(([id]) => id === action)![1];
  const warning = WARNINGS[action];
  if (warning) {
    const yes = await confirmed({
      title: `${what} ${plural(names.length, "experiment")}?`,
      text: `${names.slice(0, 12).join("\n")}${names.length > 12 ? "\n…" : ""}\n\n${warning}`,
      action: what,
      danger: true,
    });
    if (!yes) return;
  }
  const done = await Promise.allSettled(
    chosen.map((one) => (action === "delete" ? remove(one) : act(one, action))),
  );
  const failed = done.flatMap((one, i) =>
    one.status === "rejected" ? [`${names[i]}: ${(one.reason as Error).message}`] : [],
  );
  if (failed.length > 0) noteError(new Error(failed.slice(0, 3).join("; ")));
  const worked = done.length - failed.length;
  if (worked > 0) note(`${what.toLowerCase()}: asked for ${plural(worked, "experiment")}`);
}

function StateCell(props: { one: Summary }) {
  const { state, message = "" } = props.one;
  const why = whyOf(props.one);
  return (
    <span class="why-cell" title={why || message}>
      <State state={state} />
      {props.one.onSuccess === "Failed" && <small class="problem">its onSuccess job failed</small>}
      {why !== "" && <small>{why}</small>}
    </span>
  );
}

function columnsOf(all: Summary[], rows: number[], now: number, picked: Picked): Column[] {
  const at = (row: number) => all[rows[row]!]!;
  return [
    {
      id: "select", name: "", label: "Select", width: "2rem", narrow: "1.2rem",
      cell: (row) => (
        <input
          type="checkbox"
          aria-label={`Select ${at(row).name}`}
          checked={picked.has(at(row))}
          onChange={() => picked.toggle(at(row))}
        />
      ),
    },
    {
      id: "name", name: "Name", width: "minmax(11rem, 2fr)", narrow: "minmax(0, 1.2fr)",
      sortable: true,
      cell: (row) => {
        const { name, namespace, tags = [] } = at(row);
        const more = namespace === "default" ? tags : [namespace, ...tags];
        return (
          <a class="name" href={link(["e", namespace, name])}>
            {name}
            {more.length > 0 && <small>{more.join(" · ")}</small>}
          </a>
        );
      },
    },
    {
      id: "state", name: "State", width: "minmax(8rem, 1.6fr)", narrow: "6.5rem",
      sortable: true,
      cell: (row) => <StateCell one={at(row)} />,
    },
    {
      id: "progress", name: "Trials", width: "minmax(9rem, 1.2fr)", narrow: "3.6rem",
      sortable: true,
      cell: (row) => <Progress counts={countsIn(at(row))} />,
    },
    {
      id: "best", name: "Best", width: "minmax(7rem, 1.2fr)", narrow: "minmax(5.8rem, 1fr)",
      sortable: true, number: true,
      cell: (row) => (
        <span class="best-cell">
          <b>{short(at(row).best?.value ?? NaN)}</b>
          <small>
            {at(row).metric}
            {(at(row).front ?? 0) > 0 && ` · of ${count(at(row).front!)} on the front`}
          </small>
        </span>
      ),
    },
    {
      id: "algorithm", name: "Algorithm", width: "minmax(6rem, 1fr)", sortable: true, least: true,
      cell: (row) => at(row).algorithm,
    },
    {
      id: "cost", name: "Cost", width: "6rem", sortable: true, number: true, least: true,
      cell: (row) => {
        const cost = costNow(at(row), now);
        return cost === 0 ? <span class="dim">–</span> : money(cost, at(row).currency);
      },
    },
    {
      id: "preemptions", name: "Preempted", width: "6.5rem", sortable: true, number: true,
      least: true,
      cell: (row) => {
        const lost = at(row).preemptions;
        return lost === 0 ? <span class="dim">0</span> : count(lost);
      },
    },
    {
      id: "age", name: "Age", width: "6rem", sortable: true, ascends: true, number: true,
      least: true,
      cell: (row) => age(at(row).created, now),
    },
  ];
}

class Picked {
  constructor(private readonly ids: Set<string>) {}
  has(one: Summary): boolean {
    return this.ids.has(idIn(one));
  }
  toggle(one: Summary): void {
    const id = idIn(one);
    if (!this.ids.delete(id)) this.ids.add(id);
    setParams({ sel: [...this.ids] });
  }
}

function commandOf(filter: string, sort: string): string {
  const parts = ["shirabe get experiments -A"];
  const known = !["", "progress", "~progress"].includes(sort);
  if (filter !== "") parts.push(`--filter ${shellWord(filter)}`);
  if (known) parts.push(`--sort-by ${shellWord(sort)}`);
  return parts.join(" ");
}

function Actions(props: { picked: Summary[]; again: () => void }) {
  const { picked } = props;
  const able = ACTIONS.filter(([action]) => picked.every((one) => mayDo(action, one)));
  return (
    <div class="actions" role="toolbar" aria-label="Selected experiments">
      <span>{plural(picked.length, "experiment")} selected</span>
      {able.map(([action, name]) => {
        const some = picked.filter((one) => applies(action, one));
        return (
          <button
            key={action}
            class={action === "delete" ? "danger" : undefined}
            disabled={some.length === 0}
            onClick={() => void doAll(action, some.map(keyOfSummary)).then(props.again)}
          >
            {name}
          </button>
        );
      })}
      {picked.length >= 2 && picked.length <= 8 && (
        <a
          class="button"
          href={link(["compare"], { e: picked.map(idIn) })}
        >
          Compare
        </a>
      )}
      <button class="plain" onClick={() => setParams({ sel: [] })}>
        Clear
      </button>
    </div>
  );
}

// All summaries once, and then what the server says has changed.
function useSummaries() {
  const known = useRef<{ epoch: number; read: Summaries } | null>(null);
  const gone = useRef(new Set<string>());
  const epoch = session.value;
  const watch = useChanges(null, (changes) => {
    for (const { kind, namespace, experiment } of changes) {
      if (kind === "deleted") gone.current.add(idOf({ ns: namespace, name: experiment }));
    }
    loaded.again();
  }, 1000);
  const loaded = useLoad("summaries", async (abort) => {
    const deleted = [...gone.current];
    // Of another token or another server nothing is known yet.
    const old = known.current?.epoch === epoch ? known.current.read : undefined;
    const read = await readSummaries(old, deleted, abort);
    for (const id of deleted) gone.current.delete(id);
    known.current = { epoch, read };
    return [...read.all.values()];
  }, watch);
  return loaded;
}

function useRightsOf(all: Summary[] | undefined): void {
  const names = [...new Set(all?.map((one) => one.namespace))].sort().join();
  useEffect(() => {
    for (const ns of names === "" ? [] : names.split(",")) loadRights(ns).catch(() => undefined);
  }, [names]);
}

export function Experiments() {
  const loaded = useSummaries();
  useRightsOf(loaded.value);
  const now = useNow(5000);
  const search = useRef<HTMLInputElement>(null);
  const [filter, sort] = [param("filter"), param("sort") || "age"];
  const all = loaded.value ?? [];
  const { rows, problem } = useMemo(() => choose(all, filter, sort, now), [all, filter, sort, now]);
  const ids = new Set(new URLSearchParams(location.hash.split("?")[1] ?? "").getAll("sel"));
  const picked = new Picked(ids);
  useKeys([{ key: "/", help: "search or filter", act: () => search.current?.focus() }]);
  useEffect(() => void (document.title = "Experiments · Shirabe"), []);
  const open = (row: number) => {
    const { name, namespace } = all[rows[row]!]!;
    go(link(["e", namespace, name]));
  };
  const chosen = all.filter((one) => picked.has(one));
  const running = all.filter((one) => !isEndState(one.state)).length;
  const written = problem !== "" || !isCommandFilter(filter) ? ""
    : commandFilter(filter, fieldsOf(all, now));
  return (
    <main id="main" class="page fill">
      <div class="page-head">
        <h1>Experiments</h1>
        <span class="shown">
          {loaded.value &&
            (rows.length < all.length
              ? `${count(rows.length)} of ${count(all.length)} shown`
              : `${count(all.length)}, ${count(running)} not ended`)}
        </span>
        <div class="tools">
          <input
            ref={search}
            type="search"
            class="search"
            placeholder="Search, or state=Running,cost>1"
            aria-label="Search or filter"
            aria-invalid={problem !== ""}
            value={filter}
            onInput={(event) => setParams({ filter: event.currentTarget.value })}
          />
          <Menu
            label="Only those in a state"
            class=""
            items={["", "Running", "Paused", "Succeeded", "Failed"].map((state) => ({
              name: state === "" ? "any state" : lookOf(state).word,
              checked: filter === (state === "" ? "" : `state=${state}`),
              act: () => setParams({ filter: state === "" ? "" : `state=${state}` }),
            }))}
          >
            State ▾
          </Menu>
          <a class="button primary" href={link(["new"])}>
            New experiment
          </a>
        </div>
      </div>
      {problem !== "" && <p class="problem">{problem}</p>}
      {loaded.error && !loaded.value && <p class="problem">{loaded.error.message}</p>}
      {chosen.length > 0 && <Actions picked={chosen} again={loaded.again} />}
      {loaded.value && (
        <Grid
          label="Experiments"
          rows={rows.length}
          rowHeight={52}
          columns={columnsOf(all, rows, now, picked)}
          sort={sort}
          onSort={(next) => setParams({ sort: next })}
          onOpen={open}
          isSelected={(row) => picked.has(all[rows[row]!]!)}
          onSelect={(row) => picked.toggle(all[rows[row]!]!)}
          empty={
            all.length > 0 ? (
              <Empty title="No experiment meets this filter">
                <button onClick={() => setParams({ filter: "" })}>Show all</button>
              </Empty>
            ) : (
              <Empty title="No experiments yet">
                <p>
                  <a href={link(["new"])}>Make one here</a>, or run one:
                </p>
                <Command text="shirabe run -f deploy/examples/digits.yaml" />
              </Empty>
            )
          }
        />
      )}
      <footer class="page-foot">
        <Command text={commandOf(written, sort)} />
        <span class="dim">
          {plural(all.reduce((n, one) => n + one.trialsEnded, 0), "trial")} ended
        </span>
      </footer>
    </main>
  );
}
