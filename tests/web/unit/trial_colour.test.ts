import assert from "node:assert/strict";
import { test } from "node:test";
import { trialColour } from "../../../web/src/trial_colour.js";

test("a colour belongs to a trial, and two hundred of them are all different", () => {
  const all = Array.from({ length: 200 }, (_, i) => trialColour(i + 1, 0.55));
  assert.equal(new Set(all).size, 200);
  assert.equal(trialColour(7, 0.55), all[6]);
  const hue = (text: string) => Number(/ ([\d.]+) \//.exec(text)![1]);
  for (let i = 1; i < 200; ++i) {
    const apart = Math.abs(hue(all[i]!) - hue(all[i - 1]!));
    assert.ok(Math.min(apart, 360 - apart) > 90, `${all[i - 1]} ${all[i]}`);
  }
  assert.match(trialColour(1, 0.76, 0.4), / 0\.4\)$/);
});
