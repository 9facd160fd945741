// The scale of colours from the worst to the best, with the values at its ends.
import { short } from "../format.js";

interface RampProps {
  worst: number;
  best: number;
  full?: boolean; // with the lightest colours, which cells have and lines do not
}

export function Ramp(props: RampProps) {
  return (
    <span class="ramp-scale">
      worst <b>{short(props.worst)}</b>
      <span class={`ramp ${props.full ? "full" : ""}`} aria-hidden="true" />
      {" "}
      <b>{short(props.best)}</b> best
    </span>
  );
}
