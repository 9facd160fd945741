// The note and the tags of an experiment.
import { useShared } from "../pages/context.js";
import { Annotation } from "../ui/annotation.js";

export default function Notes() {
  const { key, experiment, again } = useShared();
  return (
    <div class="panels">
      <Annotation about={key} trial={0} record={experiment.status?.shirabe ?? {}} again={again} />
    </div>
  );
}
