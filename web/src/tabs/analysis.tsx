// What the trials say of the parameters.
import { useShared } from "../pages/context.js";
import { FilterBar } from "../ui/filterbar.js";
import { Contour } from "./contour.js";
import { AblationPanel, ImportancePanel } from "./importance.js";
import { Parallel } from "./parallel.js";
import { Slices } from "./slices.js";

export default function Analysis() {
  const { data } = useShared();
  if (!data) return <div aria-busy="true" />;
  return (
    <>
      <FilterBar />
      <div class="panels">
        <Parallel />
        <ImportancePanel />
        <AblationPanel />
        <Slices />
        <Contour />
      </div>
    </>
  );
}
