// What happened, newest first: of the experiment, its trials and attempts, and who caused it.
import { useMemo } from "preact/hooks";
import { listEvents } from "../api/experiments.js";
import type { Event } from "../api/records.js";
import { FilterError, chooser } from "../filter.js";
import { clock, count, plural } from "../format.js";
import { useChanges, useLoad, useNow } from "../load.js";
import { namespaceFlag, useShared } from "../pages/context.js";
import type { Column } from "../ui/grid.js";
import { Grid } from "../ui/grid.js";
import { Menu } from "../ui/menu.js";
import { Command, Empty, csv, save } from "../ui/panel.js";
import { Icon } from "../ui/state.js";
import { go, link, param, setParams } from "../url.js";

function trialOf(event: Event): number {
  return Number(/-(\d+)$/.exec(event.trial ?? "")?.[1] ?? NaN);
}

function chosen(events: Event[], filter: string): { rows: number[]; problem: string } {
  const newest = events.map((_, i) => events.length - 1 - i);
  const fields = [
    { name: "type", text: true, at: (i: number) => events[i]!.type },
    { name: "reason", text: true, at: (i: number) => events[i]!.reason },
    { name: "message", text: true, at: (i: number) => events[i]!.message },
    { name: "actor", text: true, at: (i: number) => events[i]!.actor?.name },
    { name: "trial", at: (i: number) => trialOf(events[i]!) },
    { name: "attempt", at: (i: number) => events[i]!.attempt },
  ];
  try {
    return { rows: newest.filter(chooser(filter, fields)), problem: "" };
  } catch (error) {
    if (!(error instanceof FilterError)) throw error;
    return { rows: newest, problem: error.message };
  }
}

export default function Events() {
  const { key } = useShared();
  const now = useNow(10_000);
  const watch = useChanges(key, () => loaded.again(), 2000);
  const loaded = useLoad(`${key.ns}/${key.name}`, (abort) => listEvents(key, 0, abort), watch);
  const filter = param("events");
  const all = loaded.value ?? [];
  const { rows, problem } = useMemo(() => chosen(all, filter), [all, filter]);
  if (!loaded.value) {
    return loaded.error ? <p class="problem">{loaded.error.message}</p> : <div aria-busy="true" />;
  }
  const at = (row: number) => all[rows[row]!]!;
  const columns: Column[] = [
    { id: "time", name: "Time", width: "8rem", cell: (row) => (
      <time dateTime={at(row).time} title={at(row).time}>{clock(at(row).time, now)}</time>
    ) },
    { id: "type", name: "Kind", width: "6rem", least: true, cell: (row) => {
      const warning = at(row).type === "Warning";
      return (
        <span class={`state ${warning ? "pause" : "wait"}`}>
          <Icon shape={warning ? "bolt" : "ring"} />
          {warning ? "warning" : "normal"}
        </span>
      );
    } },
    { id: "trial", name: "Trial", width: "6rem", cell: (row) => {
      const trial = trialOf(at(row));
      if (Number.isNaN(trial)) return <span class="dim">–</span>;
      const attempt = at(row).attempt;
      return (
        <a href={link(["t", key.ns, key.name, trial])}>
          {trial}
          {attempt ? <small> a{attempt}</small> : null}
        </a>
      );
    } },
    { id: "reason", name: "Reason", width: "minmax(11rem, 1fr)", cell: (row) => (
      <b>{at(row).reason.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase()}</b>
    ) },
    { id: "message", name: "What", width: "minmax(14rem, 3.5fr)", cell: (row) => (
      <span title={at(row).message}>{at(row).message}</span>
    ) },
    { id: "actor", name: "By", width: "9rem", least: true,
      cell: (row) => at(row).actor?.name ?? "" },
  ];
  const table = () => ({
    columns: ["time", "type", "trial", "attempt", "reason", "message", "by"],
    rows: rows.map((i) => {
      const one = all[i]!;
      return [one.time ?? "", one.type, one.trial ?? "", one.attempt ?? "", one.reason,
        one.message, one.actor?.name ?? ""];
    }),
  });
  const shown = rows.length < all.length
    ? `${count(rows.length)} of ${count(all.length)} events shown` : plural(all.length, "event");
  return (
    <div class="tall">
      <div class="filterbar">
        <input
          type="search"
          placeholder="Search, or type=Warning,trial=3"
          aria-label="Search the events"
          aria-invalid={problem !== ""}
          value={filter}
          onInput={(event) => setParams({ events: event.currentTarget.value })}
        />
        <span class="shown">{shown}</span>
        <div class="tools">
          <button
            aria-pressed={filter === "type=Warning"}
            onClick={() => setParams({ events: filter === "type=Warning" ? "" : "type=Warning" })}
          >
            Warnings
          </button>
          <Menu
            label="Download"
            class=""
            items={[{ name: "CSV of what is shown", act: () => save("events.csv", csv(table())) }]}
          >
            Download ▾
          </Menu>
        </div>
        {problem !== "" && <p class="problem">{problem}</p>}
      </div>
      <Grid
        label="Events"
        rows={rows.length}
        rowHeight={34}
        columns={columns}
        sort=""
        onSort={() => undefined}
        onOpen={(row) => {
          const trial = trialOf(at(row));
          if (!Number.isNaN(trial)) go(link(["t", key.ns, key.name, trial]));
        }}
        empty={<Empty title={all.length > 0 ? "No event meets this filter" : "Nothing yet"} />}
      />
      <Command text={`shirabe events ${key.name}${namespaceFlag(key)}`} />
    </div>
  );
}
