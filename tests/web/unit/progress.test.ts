import assert from "node:assert/strict";
import { test } from "node:test";
import { progressFacts } from "../../../web/src/ui/progress.js";

const none = {
  succeeded: 0, earlyStopped: 0, failed: 0, withoutMetrics: 0, killed: 0, running: 0, pending: 0,
  max: 4,
};

test("trials without metrics are not said to have failed, which the filter's `failed` leaves out",
  () => {
    const words = (counts: object) =>
      progressFacts({ ...none, ...counts }).map((one) => `${one.name} ${one.value}`);
    assert.deepEqual(words({ withoutMetrics: 4 }),
      ["Trials completed 4", "Trials without metrics 4"]);
    assert.deepEqual(words({ failed: 2 }), ["Trials completed 0", "Trials failed 2"]);
  });
