// The pictures of the analysis: parameters that a trial need not have, brushes, names that are long
// or hold quotes, one selection.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { asked, newHome, on, serve } from "./harness.mjs";

let server;

// Asked for and told; the last `open` of them are left running.
async function make(name, more, { trials, open = 0, value }) {
  await server.call("POST", "/api/v1/experiments", asked(name, { trials: 100, ...more }));
  const one = `/api/v1/namespaces/default/experiments/${name}`;
  for (let i = 0; i < trials; ++i) {
    const { trial } = await server.call("POST", `${one}:ask`, { caller: `w${i}` });
    if (i >= trials - open) continue;
    await server.call("POST", `${one}/trials/${trial.status.shirabe.number}:tell`, {
      metrics: { loss: value(i) }, step: 1, end: "completed",
    });
  }
}

const number = (name, min, max) =>
  ({ name, parameterType: "double", feasibleSpace: { min: `${min}`, max: `${max}` } });
const category = (name, ...list) =>
  ({ name, parameterType: "categorical", feasibleSpace: { list } });

before(async () => {
  server = await serve({ home: newHome() });
  // Each kind of model has a parameter of its own.
  await make("models", {
    parameters: [category("model", "svm", "forest"), number("c", 1, 2), number("depth", 3, 4)],
    shirabe: {
      conditions: [
        { parameter: "c", when: { model: ["svm"] } },
        { parameter: "depth", when: { model: ["forest"] } },
      ],
    },
  }, { trials: 24, open: 2, value: Math.cos });
});

const drawn = (page) => page.waitForFunction(() =>
  Number(document.querySelector(".parallel canvas")?.dataset.took) > 0);

// How many pixels of a part of the picture have ink; from and to are shares of its size.
const ink = (page, selector, { x = [0, 1], y = [0, 1] }) =>
  page.locator(selector).first().evaluate((canvas, [from, to]) => {
    const at = ([x, y]) => [Math.floor(x * canvas.width), Math.floor(y * canvas.height)];
    const [[left, top], [right, bottom]] = [at(from), at(to)];
    const { data } = canvas.getContext("2d")
      .getImageData(left, top, right - left, bottom - top);
    return data.filter((value, i) => i % 4 === 3 && value > 0).length;
  }, [[x[0], y[0]], [x[1], y[1]]]);

test("a line of a trial without a parameter goes on through a lane beneath its axis", () =>
  on(server, "#/e/default/models/analysis", async (page) => {
    await drawn(page);
    // c, depth, and the objective of those that run; every trial has a model.
    assert.equal(await page.locator(".none-lane").count(), 3);
    assert.equal(await page.locator(".none-lane text").first().innerHTML(), "none");
    assert.ok(await ink(page, ".parallel canvas", { x: [0.4, 0.6], y: [0.93, 1] }) > 100);
    // All of them reach the last axis.
    assert.ok(await ink(page, ".parallel canvas", { x: [0.9, 0.94] }) > 100);
    await page.getByText("none: without the parameter, or without a result").waitFor();
  }));

test("a slice of a parameter that no trial shown has is left out, and it is said", () =>
  on(server, "#/e/default/models/analysis?filter=model%3Dsvm", async (page) => {
    await page.getByText("No trial shown with a result has depth.").waitFor();
    const names = await page.locator(".slice figcaption").allInnerTexts();
    assert.deepEqual(names.map((one) => one.trim().split(/\s/)[0]), ["model", "c"]);
    await page.getByRole("searchbox").fill("");
    await page.locator(".slice").nth(2).waitFor();
    assert.equal(await page.getByText("No trial shown with").count(), 0);
  }));
