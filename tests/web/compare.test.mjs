// Trials and experiments side by side.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { asked, newHome, on, serve } from "./harness.mjs";

const experiments = "/api/v1/namespaces/team/experiments";
let server;

async function create(name, more) {
  const record = JSON.parse(asked(name, more));
  record.metadata.namespace = "team";
  await server.call("POST", "/api/v1/experiments", record);
}

async function run(name, metrics) {
  const { trial } = await server.call("POST", `${experiments}/${name}:ask`, {
    caller: JSON.stringify(metrics),
  });
  const { number } = trial.status.shirabe;
  await server.call("POST", `${experiments}/${name}/trials/${number}:tell`, {
    metrics, step: 1, end: "completed",
  });
}

before(async () => {
  server = await serve({ home: newHome() });
  await create("one");
  await create("other", { objective: { objectiveMetricName: "error" } });
  for (const loss of [0.5, 0.25]) await run("one", { loss });
  await run("other", { error: 0.125 });
});

// How many pixels of the chart have a colour of the page.
function pixels(page, tint) {
  return page.evaluate((name) => {
    const probe = document.createElement("canvas").getContext("2d");
    probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`);
    probe.fillRect(0, 0, 1, 1);
    const wanted = probe.getImageData(0, 0, 1, 1).data;
    const canvas = document.querySelector(".chart canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let found = 0;
    for (let i = 0; i < data.length; i += 4) {
      if ([0, 1, 2, 3].every((j) => Math.abs(data[i + j] - wanted[j]) < 3)) ++found;
    }
    return found;
  }, tint);
}

test("trials with one report each are points", () =>
  on(server, "#/compare?t=team/one/1&t=team/one/2", async (page) => {
    await page.locator(".chart canvas").waitFor();
    await page.waitForTimeout(200);
    for (const tint of ["accent", "best"]) assert.ok(await pixels(page, tint) > 20, tint);
    await page.getByRole("button", { name: "Side by side: more" }).click();
    await page.getByRole("menuitem", { name: "As command" }).click();
    await page.getByText("shirabe compare one-1 one-2 -n team").waitFor();
  }));

test("experiments are compared by each one's objective, and follow what happens", () =>
  on(server, "#/compare?e=team/one&e=team/other", async (page) => {
    const row = async (name) => {
      const found = page.getByRole("row", { name });
      await found.waitFor();
      return found.locator("td").allInnerTexts();
    };
    assert.deepEqual(await row("best trial: loss"), ["0.25", "–"]);
    assert.deepEqual(await row("best trial: error"), ["–", "0.125"]);
    assert.deepEqual(await row(/^cost/), ["–", "–"]);
    await run("one", { loss: 0.0625 });
    await page.getByRole("row", { name: "best trial: loss 0.0625" }).waitFor();
    await page.getByRole("row", { name: "trials completed 3 1" }).waitFor();
  }));

test("a trial that changes while its comparison is loaded is loaded again", async () => {
  const { trial } = await server.call("POST", `${experiments}/one:ask`, { caller: "slow" });
  const { number } = trial.status.shirabe;
  await on(server, "", async (page) => {
    await page.getByRole("row", { name: /one/ }).waitFor();
    let answer;
    const changed = new Promise((resolve) => (answer = resolve));
    const old = new RegExp(`/trials/${number}$`);
    await page.route(old, async (route) => {
      const response = await route.fetch();
      await changed;
      await route.fulfill({ response });
    }, { times: 1 });
    const first = page.waitForRequest(old);
    await page.goto(`${server.url}/#/compare?t=team/one/1&t=team/one/${number}`);
    await first;
    const second = page.waitForRequest(old);
    await server.call("POST", `${experiments}/one/trials/${number}:tell`, {
      metrics: { loss: 0.0125 }, step: 1, end: "completed",
    });
    await second;
    answer();
    await page.getByRole("row", { name: /0\.0125/ }).first().waitFor();
  });
});
