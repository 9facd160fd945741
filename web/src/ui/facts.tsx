// A few numbers with their names, and the same as a table.
import type { Table } from "./panel.js";

export interface Fact {
  name: string;
  value: string;
  more: string;
}

export function factTable(facts: Fact[]): Table {
  return {
    columns: ["what", "value", "more"], rows: facts.map((one) => [one.name, one.value, one.more]),
  };
}

export function Facts(props: { facts: Fact[] }) {
  return (
    <dl class="facts">
      {props.facts.map(({ name, value, more }) => (
        <div class="fact" key={name}>
          <dt>{name}</dt>
          <dd>
            {value}
            {more !== "" && <small>{more}</small>}
          </dd>
        </div>
      ))}
    </dl>
  );
}
