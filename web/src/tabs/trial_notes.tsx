// The note and the tags of a trial.
import type { TrialView } from "../pages/trial.js";
import { Annotation } from "../ui/annotation.js";

export default function TrialNotes(props: { view: TrialView }) {
  const { key, number, trial, again } = props.view;
  return (
    <div class="panels">
      <Annotation about={key} trial={number} record={trial.status.shirabe} again={again} />
    </div>
  );
}
