// Points that an algorithm would try, and why.
import type { Candidates } from "../api/experiments.js";
import { word } from "../format.js";

export function CandidateList(props: { candidates: Candidates }) {
  const { items, reason } = props.candidates;
  return (
    <>
      <ol class="candidates">
        {items.map((one, i) => (
          <li key={i}>
            <code>
              {one.parameterAssignments.map((a) => `${a.name}=${word(a.value)}`).join("  ")}
            </code>
            {one.explanation && <small class="pre">{one.explanation}</small>}
          </li>
        ))}
      </ol>
      {reason && <p class="dim">{reason}</p>}
    </>
  );
}
