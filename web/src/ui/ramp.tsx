// The scale of colours from the worst to the best, with the values at its ends.
import { distinct } from "../format.js";

interface RampProps {
  worst: number;
  best: number;
  full?: boolean; // with the lightest colours, which cells have and lines do not
}

export function Ramp(props: RampProps) {
  const [worst, best] = distinct([props.worst, props.best]);
  return (
    <span>
      worst <b>{worst}</b>
      <span class={`ramp ${props.full ? "full" : ""}`} aria-hidden="true" />
      {" "}
      <b>{best}</b> best
    </span>
  );
}
