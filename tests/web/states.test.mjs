// The states that trials of an example do not reach by themselves, stopped early and infeasible, on
// every page that shows states: in shape, word and colour, each another one than its neighbours'.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { asked, newHome, on, serve } from "./harness.mjs";

let server;
const ONE = "/api/v1/namespaces/default/experiments/states";
const [DONE, STOPPED, INFEASIBLE, FAILED, RUNNING] = [1, 2, 3, 4, 5];
const WORDS = {
  [DONE]: "succeeded", [STOPPED]: "stopped early", [INFEASIBLE]: "infeasible",
  [FAILED]: "failed", [RUNNING]: "running",
};

const tell = (number, body) => server.call("POST", `${ONE}/trials/${number}:tell`, body);
const phaseOf = async (number) =>
  (await server.call("GET", `${ONE}/trials/${number}`)).status.shirabe.phase;

before(async () => {
  server = await serve({ home: newHome() });
  await server.call("POST", "/api/v1/experiments", asked("states"));
  for (let number = 1; number <= 5; ++number) {
    const { trial } = await server.call("POST", `${ONE}:ask`, { caller: `w${number}` });
    assert.equal(trial.status.shirabe.number, number);
    if (number === INFEASIBLE) continue;
    for (const step of [1, 2]) await tell(number, { metrics: { loss: number / step }, step });
  }
  await tell(DONE, { metrics: { loss: 0.5 }, step: 3, end: "completed" });
  await tell(INFEASIBLE, { metrics: { loss: "NaN" }, step: 1, end: "completed" });
  await tell(FAILED, { end: "failed", message: "out of luck" });
  await server.call("POST", `${ONE}/trials/${STOPPED}:stop`);
  for (let i = 0; i < 200 && (await phaseOf(STOPPED)) !== "EarlyStopped"; ++i) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.equal(await phaseOf(STOPPED), "EarlyStopped");
});

// What one sees of a state: its shape, its word and its colour.
const seen = (state) => state.evaluate((one) => {
  const shape = one.querySelector("svg.shape path");
  const box = one.querySelector("svg.shape").getBoundingClientRect();
  return {
    shape: box.width >= 8 && box.height >= 8 ? shape.getAttribute("d") : "none to be seen",
    word: one.innerText.trim(),
    colour: getComputedStyle(shape).fill,
  };
});

// Two states look different in each of the three ways, but that failed and infeasible are both bad.
function areDifferent(looks) {
  for (const [number, look] of Object.entries(looks)) assert.equal(look.word, WORDS[number]);
  for (const way of ["shape", "word", "colour"]) {
    const values = Object.entries(looks)
      .filter(([number]) => way !== "colour" || Number(number) !== FAILED)
      .map(([, look]) => look[way]);
    assert.equal(new Set(values).size, values.length, `${way}: ${values}`);
  }
}

for (const colorScheme of ["light", "dark"]) {
  test(`the table of trials tells the states apart, ${colorScheme}`, () =>
    on(server, "#/e/default/states/trials", async (page) => {
      const looks = {};
      for (const number of Object.keys(WORDS)) {
        const row = page.locator(".grid-body .grid-row", {
          has: page.getByRole("link", { name: number, exact: true }),
        });
        looks[number] = await seen(row.locator(".state"));
      }
      areDifferent(looks);
    }, { colorScheme }));
}

test("each trial's own page says its state", async () => {
  const looks = {};
  for (const number of Object.keys(WORDS)) {
    await on(server, `#/t/default/states/${number}`, async (page) => {
      await page.getByRole("heading", { name: `states / ${number}` }).waitFor();
      looks[number] = await seen(page.locator(".page-head .state"));
    });
  }
  areDifferent(looks);
});

const history = (page) =>
  page.locator("section.panel", { has: page.locator(".legend", { hasText: "stopped early" }) });

test("the overview draws them, without a result where the worst are, and lists them in words", () =>
  on(server, "#/e/default/states", async (page) => {
    const panel = history(page);
    await panel.locator("canvas").waitFor();
    // Its legend has a mark of another shape and colour for each.
    const marks = await panel.locator(".legend span:has(svg)").evaluateAll((all) =>
      all.map((one) => `${one.innerText.trim()}|${one.querySelector("svg").innerHTML}`));
    assert.equal(new Set(marks.map((one) => one.split("|")[1])).size, marks.length);
    assert.ok(marks.some((one) => one.startsWith("no result|")), marks.join("\n"));
    // Three columns of the picture, about the trials 2, 3 and 4; the crosses of the last two stand
    // at its top, where a loss is worst, also that of trial 4, which failed at a good one.
    const tints = await panel.locator("canvas").first().evaluate((canvas) => {
      const bad = getComputedStyle(document.documentElement).getPropertyValue("--bad").trim();
      const early = getComputedStyle(document.documentElement).getPropertyValue("--early").trim();
      const probe = document.createElement("canvas").getContext("2d");
      const rgb = (tint) => {
        probe.fillStyle = tint;
        probe.fillRect(0, 0, 1, 1);
        return [...probe.getImageData(0, 0, 1, 1).data].slice(0, 3);
      };
      const { data, width } = canvas.getContext("2d")
        .getImageData(0, 0, canvas.width, canvas.height);
      const columnsOf = (want) => {
        const found = new Set();
        for (let i = 0; i < data.length; i += 4) {
          const near = want.every((value, k) => Math.abs(value - data[i + k]) < 12);
          if (near && data[i + 3] > 200) found.add((i / 4) % width);
        }
        return [...found].sort((a, b) => a - b);
      };
      const want = rgb(bad);
      let lowest = 0;
      for (let i = 0; i < data.length; i += 4) {
        const near = want.every((value, k) => Math.abs(value - data[i + k]) < 12);
        if (near && data[i + 3] > 200) lowest = i / 4 / width / canvas.height;
      }
      return { bad: columnsOf(want), early: columnsOf(rgb(early)), lowest };
    });
    // Columns that touch belong to one mark.
    const count = (columns) => columns.filter((x, i) => i === 0 || x - columns[i - 1] > 3).length;
    assert.equal(count(tints.early), 1);
    assert.equal(count(tints.bad), 2);
    assert.ok(tints.lowest < 0.15, `${tints.lowest}`);
    const name = await panel.getAttribute("aria-label"); // as a table it has no legend
    const named = page.getByRole("region", { name, exact: true });
    await named.getByRole("button", { name: /more$/ }).click();
    await named.getByRole("menuitem", { name: "As table" }).click();
    for (const [number, word] of [[STOPPED, "EarlyStopped"], [INFEASIBLE, "Infeasible"]]) {
      const row = named.getByRole("row", { name: new RegExp(`^${number} `) });
      assert.match(await row.innerText(), new RegExp(`\\b${word}\\b`));
    }
  }));

test("the list counts those that were stopped early apart", () =>
  on(server, "", async (page) => {
    const row = page.locator(".grid-body .grid-row", { hasText: "states" });
    await row.locator(".progress", { hasText: "1 stopped early" }).waitFor();
    assert.equal(await row.locator(".progress-bar .early").count(), 1);
    const look = await seen(row.locator(".state"));
    assert.equal(look.word, "running");
  }));

test("a comparison of trials has their states in words", () =>
  on(server, `#/compare?t=default/states/${STOPPED}&t=default/states/${INFEASIBLE}`,
    async (page) => {
      await page.getByText("stopped early", { exact: true }).first().waitFor();
      await page.getByText("infeasible", { exact: true }).first().waitFor();
    }));

test("the timeline and the attempts say that one was stopped early", async () => {
  await on(server, `#/t/default/states/${STOPPED}/attempts`, (page) =>
    page.locator("tbody tr", { hasText: "stopped early" }).locator("svg.shape").waitFor());
  await on(server, "#/e/default/states/timeline", async (page) => {
    await page.locator(".lanes canvas").waitFor();
    const word = page.locator(".legend span, .shown, .unseen", { hasText: "stopped early" });
    await word.first().waitFor({ state: "attached" });
  });
});

test("where the models can tell nothing yet, their panels have no menu", () =>
  on(server, "#/e/default/states/analysis", async (page) => {
    for (const name of ["What brought the gain", "Which parameters matter"]) {
      const panel = page.getByRole("region", { name, exact: true });
      await panel.getByText("Too few trials to tell").waitFor();
      assert.equal(await panel.getByRole("button", { name: `${name}: more` }).count(), 0);
    }
  }));

test("a curve's colour belongs to its trial, which runs or not, is selected or not", () =>
  on(server, "#/e/default/states/curves", async (page) => {
    await page.locator(".chart canvas").waitFor();
    const tints = () => page.locator(".legend .chip").evaluateAll((all) =>
      Object.fromEntries(all.map((one) => [parseInt(one.innerText, 10),
        getComputedStyle(one.querySelector(".swatch")).backgroundColor])));
    const before = await tints();
    assert.deepEqual(Object.keys(before), [DONE, STOPPED, FAILED, RUNNING].map(String));
    assert.equal(new Set(Object.values(before)).size, 4, Object.values(before).join());
    await page.locator(".legend .chip", { hasText: /running/ }).click();
    await page.locator(".legend .chip[aria-pressed=true]").waitFor();
    assert.deepEqual(await tints(), before);
  }));

test("values that are no number are seen among a trial's metrics", () =>
  on(server, `#/t/default/states/${INFEASIBLE}/metrics`, async (page) => {
    const panel = page.getByRole("region", { name: "loss", exact: true });
    await panel.locator(".shown", { hasText: "1 value that is no number (✕), the first at step 1" })
      .waitFor();
    await panel.locator("canvas").waitFor();
    const bad = await panel.locator("canvas").first().evaluate((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let found = 0;
      for (let i = 0; i < data.length; i += 4) {
        found += data[i] > 150 && data[i + 1] < 100 && data[i + 2] < 60 && data[i + 3] > 200;
      }
      return found;
    });
    assert.ok(bad > 5, `${bad} pixels`);
  }));
