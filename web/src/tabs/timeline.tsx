// Every attempt as a part of a lane: when it waited, where it ran, why it ended. One lane a trial,
// or one a node; where they are many all of them at once, by the pixel, so that there may be any
// number of attempts.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { readTimeline } from "../api/timeline.js";
import { count, duration, plural } from "../format.js";
import type { Lanes } from "../lanes.js";
import { lanesOf, partsOf } from "../lanes.js";
import { useChanges, useLoad, useNow } from "../load.js";
import { isFiltered, namespaceFlag, useShared } from "../pages/context.js";
import { isEnded } from "../state.js";
import { inTurns } from "../turns.js";
import { FilterBar } from "../ui/filterbar.js";
import { Empty, Panel } from "../ui/panel.js";
import { Icon } from "../ui/state.js";
import { param, setParams } from "../url.js";
import { LanesPicture } from "./timeline_lanes.js";

const MANY = 500; // lanes; more are shown all at once, if nothing else is asked

function isoOf(time: number): string {
  return Number.isNaN(time) ? "" : new Date(time).toISOString();
}

function rowsOf(lanes: Lanes): (string | number)[][] {
  const { table, from, to, queued, look, looks } = lanes.parts;
  return Array.from(lanes.items.slice().sort(), (i) => [
    table.number("trial")[i]!, table.number("attempt")[i]!, looks[look[i]!]!.word,
    table.word("node", i), table.word("pool", i), table.word("capacity", i),
    ((from[i]! - queued[i]!) / 1000).toFixed(1), isoOf(table.number("start")[i]!),
    isoOf(table.number("end")[i]!), ((to[i]! - from[i]!) / 1000).toFixed(1),
    table.number("cost")[i] || "",
  ]);
}

function Legend(props: { lanes: Lanes }) {
  const { selected } = useShared();
  const { parts, ofLook } = props.lanes;
  return (
    <div class="legend">
      {parts.looks.map((look, i) => ofLook[i]! > 0 && (
        <span key={look.word} class={`state ${look.tone}`}>
          <Icon shape={look.shape} />
          {look.word}
        </span>
      ))}
      <span>thin: waited</span>
      <span>hatched: on a spot machine</span>
      {selected.size > 0 && <span>framed: selected</span>}
      <span>Ctrl and the wheel: closer</span>
    </div>
  );
}

interface Made {
  lanes: Lanes | null;
  problem: string;
  drawn: () => void; // to be called once the lanes stand there
}

// What is loaded, as lanes; null until they are made. Those that were there stay meanwhile.
function useLanes(byNode: boolean): Made {
  const { key, experiment, data, rows } = useShared();
  const watch = useChanges(key, (changes) => {
    if (changes.some((one) => one.kind === "attempt")) loaded.again();
  }, 1500);
  const loaded = useLoad(`${key.ns}/${key.name}`, (abort) => readTimeline(key, abort), watch);
  const ended = isEnded(experiment);
  const clock = useNow(ended ? 60_000 : 1000);
  const [now, setNow] = useState(clock);
  const working = useRef(false); // they are being made, or drawn
  const filtered = isFiltered() && data !== null;
  const [lanes, setLanes] = useState<Lanes | null>(null);
  const table = loaded.value;
  // Only what has not ended grows with time.
  const moves = useMemo(() => table?.number("end").some((end) => !end) ?? false, [table]);
  // A second that passes does not give up what takes longer than it, to make and to draw: it waits
  // for its turn.
  useEffect(() => {
    if (!working.current) setNow(clock);
  }, [clock, lanes]);
  useEffect(() => {
    if (!table) return;
    const abort = new AbortController();
    working.current = true;
    const work = function* (): Generator<void, Lanes> {
      const parts = yield* partsOf(table, now);
      const trials = filtered ? new Set(Array.from(rows, (row) => data!.table.trial(row))) : null;
      return yield* lanesOf(parts, { byNode, trials });
    };
    void inTurns(work(), abort.signal).then((made) => {
      if (!made || abort.signal.aborted) return;
      working.current = made.items.length > 0; // else there is nothing to draw
      setLanes(made);
    });
    return () => abort.abort();
  }, [table, ended || !moves ? 0 : now, filtered ? rows : null, byNode]);
  return {
    lanes: table ? lanes : null,
    problem: table ? "" : (loaded.error?.message ?? ""),
    drawn: () => (working.current = false),
  };
}

function Tools(props: { byNode: boolean; all: boolean; zoomed: boolean }) {
  return (
    <>
      <label>
        One lane a
        <select
          value={props.byNode ? "node" : "trial"}
          onChange={(event) => setParams({
            lanes: event.currentTarget.value === "node" ? "node" : "", lane: "",
          })}
        >
          <option>trial</option>
          <option>node</option>
        </select>
      </label>
      <label>
        Show lanes
        <select
          value={props.all ? "all" : "each"}
          onChange={(event) => setParams({ rows: event.currentTarget.value, lane: "" })}
        >
          <option value="each">one by one</option>
          <option value="all">all at once</option>
        </select>
      </label>
      {props.zoomed && (
        <button onClick={() => setParams({ from: "", to: "" })}>Show all</button>
      )}
    </>
  );
}

export default function Timeline() {
  const { key } = useShared();
  const byNode = param("lanes") === "node";
  const { lanes, problem, drawn } = useLanes(byNode);
  if (!lanes) return problem ? <p class="problem">{problem}</p> : <div aria-busy="true" />;
  const from = Number(param("from")) || lanes.begin;
  const to = Math.max(Number(param("to")) || lanes.end, from + 1);
  const lost = lanes.parts.looks.reduce(
    (sum, look, i) => sum + (look.tone === "bolt" ? lanes.ofLook[i]! : 0), 0);
  const label = `${plural(lanes.items.length, "attempt")} in ${count(lanes.count)} lanes, ` +
    `${plural(lost, "preemption")}, over ${duration((lanes.end - lanes.begin) / 1000)}`;
  const zoomed = param("from") !== "" || param("to") !== "";
  const all = param("rows") === "all" || (param("rows") === "" && lanes.count > MANY);
  return (
    <>
      <FilterBar shown={label} />
      <Panel
        title="Attempts"
        image
        summary={label}
        command={`shirabe get attempts ${key.name}${namespaceFlag(key)} -o wide`}
        table={() => ({
          columns: ["trial", "attempt", "why it ended", "node", "pool", "capacity", "waited, s",
            "start", "end", "ran, s", "cost"],
          rows: rowsOf(lanes),
        })}
        tools={<Tools byNode={byNode} all={all} zoomed={zoomed} />}
      >
        {lanes.items.length === 0 ? (
          <Empty title="No attempt has been made yet" />
        ) : (
          <>
            <LanesPicture
              key={all ? "all" : "each"} lanes={lanes} from={from} to={to} label={label} all={all}
              onDrawn={drawn}
            />
            <Legend lanes={lanes} />
          </>
        )}
      </Panel>
    </>
  );
}
