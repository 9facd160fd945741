// What runs where, what waits and why, and what it costs, over all experiments that the user may
// see.
import { useEffect } from "preact/hooks";
import type { CapacityReport } from "../api/capacity.js";
import { readCapacity } from "../api/capacity.js";
import { clock, count, duration, money, plural } from "../format.js";
import { useChanges, useLoad, useNow } from "../load.js";
import { Facts, factTable } from "../ui/facts.js";
import type { Fact } from "../ui/facts.js";
import { Empty, Panel } from "../ui/panel.js";
import { link } from "../url.js";

function Now(props: { report: CapacityReport }) {
  const { report } = props;
  const spot = report.attempts.filter((one) => one.capacity === "spot").length;
  const facts: Fact[] = [{
    name: "Running", value: plural(report.attempts.length, "attempt"),
    more: `${count(spot)} on spot machines, ${count(report.attempts.length - spot)} on others`,
  }, {
    name: "Waiting", value: plural(report.pending, "trial"),
    more: `of ${plural(report.queue.length, "experiment")}`,
  }, { name: "Costs now", value: `${money(report.costPerHour)} an hour`, more: "of what runs" }];
  const hour = report.hours.at(-1);
  if (hour) {
    const value = plural(hour.preemptions, "attempt");
    facts.push({ name: "Preemptions", value, more: "lost in this hour" });
  }
  return (
    <Panel title="Now" command="shirabe top -A" table={() => factTable(facts)}>
      <Facts facts={facts} />
    </Panel>
  );
}

interface HoursProps {
  title: string;
  report: CapacityReport;
  value: (hour: CapacityReport["hours"][number]) => number;
  part?: (hour: CapacityReport["hours"][number]) => number; // of it, drawn darker
  text: (value: number) => string;
  note: string;
}

function hourOf(time: string): string {
  return `${String(new Date(time).getHours()).padStart(2, "0")}:00`;
}

// One bar an hour.
function Hours(props: HoursProps) {
  const { hours } = props.report;
  const most = Math.max(...hours.map(props.value), 1e-9);
  const [width, height] = [600, 120];
  const highest = hours.findIndex((one) => props.value(one) === most);
  const step = width / Math.max(hours.length, 1);
  const total = hours.reduce((sum, one) => sum + props.value(one), 0);
  const summary = `${props.title}: ${props.text(total)} in ${plural(hours.length, "hour")}, ` +
    `at most ${props.text(Math.max(...hours.map(props.value), 0))} in one`;
  return (
    <Panel
      title={props.title}
      class="half"
      shown={`${props.text(total)} in ${plural(hours.length, "hour")}`}
      image
      command="shirabe top -A"
      summary={summary}
      table={() => ({
        columns: ["hour", props.title],
        rows: hours.map((one) => [one.start, props.value(one)]),
      })}
    >
      <svg class="picture bars" viewBox={`0 0 ${width} ${height + 20}`} role="img"
        aria-label={summary}>
        <line x1="0" x2={width} y1={height} y2={height} />
        {hours.map((one, i) => {
          const size = (props.value(one) / most) * (height - 18);
          const part = props.part ? (props.part(one) / most) * (height - 18) : 0;
          return (
            <g key={one.start}>
              <title>{`${clock(one.start)}: ${props.text(props.value(one))}`}</title>
              <rect x={i * step + 1} width={Math.max(1, step - 2)}
                y={height - size} height={size} />
              <rect class="part" x={i * step + 1} width={Math.max(1, step - 2)}
                y={height - part} height={part} />
              {i % Math.ceil(hours.length / 8) === 0 && (
                <text x={Math.max(18, i * step + step / 2)} y={height + 15}>
                  {hourOf(one.start)}
                </text>
              )}
              {i === highest && (
                <text x={Math.min(width - 40, Math.max(40, i * step + step / 2))}
                  y={height - size - 4}>
                  {props.text(most)}
                </text>
              )}
            </g>
          );
        })}
      </svg>
      <p class="dim">{props.note}</p>
    </Panel>
  );
}

function Pools(props: { report: CapacityReport }) {
  const columns = ["pool", "capacity", "running", "nodes", "cost an hour"];
  const rows = props.report.pools.map((one) => [
    one.pool || "this machine", one.capacity || "–", one.running, one.nodes,
    money(one.costPerHour),
  ]);
  return (
    <Panel title="By pool" class="half" command="shirabe top -A"
      table={() => ({ columns, rows })}>
      {rows.length === 0 ? <p class="dim">Nothing runs now.</p> : (
        <table class="plain-table">
          <thead>
            <tr>{columns.map((name) => <th scope="col" key={name}>{name}</th>)}</tr>
          </thead>
          <tbody>
            {rows.map((row, i) => (
              <tr key={i}>{row.map((cell, j) => <td key={j}>{cell}</td>)}</tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

function Queue(props: { report: CapacityReport }) {
  const { queue } = props.report;
  return (
    <Panel title="Waiting" class="half" command="shirabe get experiments -A"
      table={() => ({
        columns: ["namespace", "experiment", "trials", "why"],
        rows: queue.map((one) => [one.namespace, one.experiment, one.pending, one.waiting]),
      })}>
      {queue.length === 0 ? <p class="dim">Nothing waits.</p> : (
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">experiment</th>
              <th scope="col">trials</th>
              <th scope="col">why</th>
            </tr>
          </thead>
          <tbody>
            {queue.map((one) => (
              <tr key={`${one.namespace}/${one.experiment}`}>
                <td><a href={link(["e", one.namespace, one.experiment])}>{one.experiment}</a></td>
                <td>{one.pending}</td>
                <td class="pre">{one.waiting || "for a turn"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

function Running(props: { report: CapacityReport; now: number }) {
  const { attempts } = props.report;
  const columns = ["trial", "attempt", "node", "pool", "capacity", "cost an hour", "for"];
  const rows = attempts.map((one) => [
    `${one.experiment}/${one.trial}`, one.attempt, one.node || "–", one.pool || "–",
    one.capacity || "–", one.pricePerHour ? money(one.pricePerHour) : "–",
    one.startTime ? duration((props.now - Date.parse(one.startTime)) / 1000) : "about to start",
  ]);
  return (
    <Panel title="What runs where" command="shirabe get attempts -A"
      table={() => ({ columns, rows })}
      shown={plural(attempts.length, "attempt")}>
      {attempts.length === 0 ? (
        <Empty title="Nothing runs now" />
      ) : (
        <div class="scroll" tabIndex={0} role="group" aria-label="What runs where">
          <table class="plain-table">
            <thead>
              <tr>{columns.map((name) => <th scope="col" key={name}>{name}</th>)}</tr>
            </thead>
            <tbody>
              {attempts.map((one, i) => (
                <tr key={`${one.namespace}/${one.experiment}/${one.trial}`}>
                  <td>
                    <a href={link(["t", one.namespace, one.experiment, one.trial])}>
                      {rows[i]![0]}
                    </a>
                  </td>
                  {rows[i]!.slice(1).map((cell, j) => <td key={j}>{cell}</td>)}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

export default function Capacity() {
  const watch = useChanges(null, () => loaded.again(), 3000);
  const loaded = useLoad("capacity", readCapacity, watch);
  const now = useNow(1000);
  useEffect(() => void (document.title = "Capacity · Shirabe"), []);
  const report = loaded.value;
  return (
    <main id="main" class="page" aria-busy={!report}>
      <div class="page-head">
        <h1>Capacity</h1>
        <span class="shown">{report && `as of ${clock(report.asOf, now)}`}</span>
      </div>
      {loaded.error && <p class="problem">{loaded.error.message}</p>}
      {report && (
        <div class="panels">
          <Now report={report} />
          {report.hours.length > 0 && (
            <>
              <Hours
                title="Preemptions an hour"
                report={report}
                value={(hour) => hour.preemptions}
                text={(n) => plural(n, "preemption")}
                note="Attempts that were lost to the platform."
              />
              <Hours
                title="Money an hour"
                report={report}
                value={(hour) => hour.cost}
                part={(hour) => hour.spotCost}
                text={(n) => money(n)}
                note="The stronger part: on spot machines."
              />
            </>
          )}
          <Pools report={report} />
          <Queue report={report} />
          <Running report={report} now={now} />
        </div>
      )}
    </main>
  );
}
