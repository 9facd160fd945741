// A state in shape, word and colour, so that none of the three is needed to read the others.
import type { Shape } from "../state.js";
import { lookOf } from "../state.js";

const PATHS: Record<Shape, string> = {
  ring: "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 0 0 0-11zm0 2a3.5 3.5 0 1 1 0 7a3.5 3.5 0 0 1 0-7z",
  play: "M4 2.5l9.5 5.5L4 13.5z",
  check: "M2 8.6l1.8-1.8l2.6 2.6l5.8-6L14 5.2l-7.6 7.7z",
  cross: "M3 4.6L4.6 3L8 6.4L11.4 3L13 4.6L9.6 8l3.4 3.4l-1.6 1.6L8 9.6L4.6 13L3 11.4L6.4 8z",
  half: "M8 2a6 6 0 0 0 0 12zm1.2 0.1v11.8a6 6 0 0 0 0-11.8zm1.6 2.3a4.4 4.4 0 0 1 0 7.2z",
  slash: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2z" +
    "m-4 6a4 4 0 0 0 .8 2.4L10.4 4.8A4 4 0 0 0 4 8zm8 0a4 4 0 0 0-.8-2.4L5.6 11.2A4 4 0 0 0 12 8z",
  bars: "M3.5 2.5h3.2v11H3.5zm5.8 0h3.2v11H9.3z",
  bolt: "M9.5 1L3 9h4.2L6 15l7-8.5H8.6z",
};

export function Icon(props: { shape: Shape; class?: string }) {
  return (
    <svg class={`shape ${props.class ?? ""}`} viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[props.shape]} fill-rule="evenodd" />
    </svg>
  );
}

export function State(props: { state: string; title?: string; bare?: boolean }) {
  const look = lookOf(props.state);
  return (
    <span class={`state ${look.tone}`} title={props.title}>
      <Icon shape={look.shape} />
      <span class={props.bare ? "unseen" : undefined}>{look.word}</span>
    </span>
  );
}
