// Several objectives: the front, what lies behind it, and the one of it that is best by weights.
import { useMemo } from "preact/hooks";
import { hasFront, objectivesOf } from "../objectives.js";
import { useShared } from "../pages/context.js";
import { standingsOf } from "../pareto.js";
import { FilterBar } from "../ui/filterbar.js";
import { Empty } from "../ui/panel.js";
import { link } from "../url.js";
import { ParetoChart } from "./pareto_chart.js";
import { BestByWeights, FrontPanel, numberIn, pickedOf } from "./pareto_front.js";

export default function Pareto() {
  const { data, experiment, key } = useShared();
  const listed = (experiment.status?.shirabe?.front?.trials ?? []).map(numberIn);
  const names = listed.join();
  const standings = useMemo(
    () => data && standingsOf(data.table, experiment, new Set(listed)),
    [data?.table, data?.version, names],
  );
  if (!hasFront(experiment)) {
    return (
      <Empty title="This experiment has one objective">
        <p>
          <a href={link(["e", key.ns, key.name])}>Its best trial</a> is on the overview; a front
          is of several (spec.shirabe.additionalObjectives).
        </p>
      </Empty>
    );
  }
  if (!data || !standings) return <div aria-busy="true" />;
  const picked = pickedOf(experiment, data.table, standings.front);
  const scene = {
    objectives: objectivesOf(experiment), standings,
    picked: picked.trial === null ? 0 : numberIn(picked.trial),
  };
  return (
    <>
      <FilterBar />
      <div class="panels">
        <ParetoChart scene={scene} class="two-thirds" />
        <BestByWeights picked={picked} class="third" />
        <FrontPanel scene={scene} />
      </div>
    </>
  );
}
