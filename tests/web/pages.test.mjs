// Each page on a real experiment that was preempted.
import assert from "node:assert/strict";
import { test, before } from "node:test";
import { newHome, on, serve } from "./harness.mjs";

let server;
before(async () => {
  server = await serve({ home: newHome(true) });
});

const spot = "#/e/default/digits-spot";
const oneTrial = "#/t/default/digits-spot";

async function trialWithPreemption() {
  const { items } = await server.call(
    "GET", "/api/v1/namespaces/default/experiments/digits-spot/trials?filter=preemptions>0");
  assert.ok(items.length > 0, "no trial was preempted");
  return items[0].status.shirabe.number;
}

test("the list shows state, progress, best, cost and preemptions, and opens the experiment", () =>
  on(server, "", async (page) => {
    const row = page.getByRole("row", { name: /digits-spot/ });
    await row.getByText("succeeded", { exact: true }).first().waitFor();
    const experiment = await server.call(
      "GET", "/api/v1/namespaces/default/experiments/digits-spot");
    const text = await row.innerText();
    const best = experiment.status.currentOptimalTrial.observation.metrics
      .find((one) => one.name === "validation-accuracy").max;
    assert.ok(text.includes(Number(best).toPrecision(6).replace(/0+$/, "")), text);
    assert.match(text, /8 \/ 8/);
    assert.match(text, /\$0\.0\d+/);
    assert.ok(text.split("\n").includes(String(experiment.status.shirabe.preemptions)), text);
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/e\/default\/digits-spot$/);
    await page.waitForFunction(() => document.title === "digits-spot · Shirabe");
  }));

test("the overview answers: how good, how long, how dear, how much was lost", () =>
  on(server, spot, async (page) => {
    await page.getByRole("heading", { name: "Best trial" }).waitFor();
    const { status } = await server.call(
      "GET", "/api/v1/namespaces/default/experiments/digits-spot");
    for (const { name, value } of status.currentOptimalTrial.parameterAssignments) {
      await page.getByText(value, { exact: true }).first().waitFor();
      assert.ok((await page.getByText(name, { exact: true }).count()) > 0);
    }
    await page.getByText(/preemptions?, .* done again/).waitFor();
    await page.getByText(/less than on demand/).waitFor();
    await page.getByRole("img", { name: /8 trials; the best validation-accuracy/ }).waitFor();
    await page.getByRole("button", { name: "Copy as arguments" }).click();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    const lr = status.currentOptimalTrial.parameterAssignments[0].value;
    assert.ok(copied.startsWith(`--lr=${lr} --alpha=`), copied);
  }));

test("a panel is also a table and a command", () =>
  on(server, spot, async (page) => {
    await page.getByRole("button", { name: /History .*: more/ }).click();
    await page.getByRole("menuitem", { name: "As table" }).click();
    const table = page.getByRole("region", { name: /History/ }).getByRole("table");
    assert.equal(await table.getByRole("row").count(), 9);
    await page.getByRole("button", { name: /History .*: more/ }).click();
    await page.getByRole("menuitem", { name: "As command" }).click();
    await page.getByText("shirabe plot digits-spot history -o history.svg").waitFor();
    await page.keyboard.press("Escape");
    await page.getByText("shirabe plot").waitFor({ state: "detached" });
  }));

test("numbers are also a table", async () => {
  for (const [address, panel, row] of [
    [spot, "How far, how long, how dear", /^Trials completed 8 of 8$/],
    [spot, "Now", /^trial state validation-accuracy step for why it waits$/],
    ["#/capacity", "Now", /^Running 0 attempts 0 on spot/],
  ]) {
    await on(server, address, async (page) => {
      await page.getByRole("button", { name: `${panel}: more` }).click();
      await page.getByRole("menuitem", { name: "As table" }).click();
      await page.getByRole("region", { name: panel, exact: true }).getByRole("row", { name: row })
        .waitFor();
    });
  }
});

test("the table of trials is filtered and sorted by its address, as the command says", () =>
  on(server, `${spot}/trials?filter=activation%3Dlogistic&sort=~objective`, async (page) => {
    const { items } = await server.call(
      "GET", "/api/v1/namespaces/default/experiments/digits-spot/trials" +
        "?filter=activation%3Dlogistic&sort=~objective");
    const grid = page.getByRole("grid", { name: "Trials" });
    await grid.getByRole("row").nth(1).waitFor();
    const shown = await grid.locator("[role=row] a").allInnerTexts();
    assert.deepEqual(shown.map(Number), items.map((one) => one.status.shirabe.number));
    await page.getByText(`${items.length} of 8 trials shown`).waitFor();
    await page.getByText(
      "shirabe get trials digits-spot --filter activation=logistic --sort-by '~objective'",
    ).or(page.getByText(
      "shirabe get trials digits-spot --filter activation=logistic --sort-by ~objective",
    )).first().waitFor();
    await page.getByRole("searchbox").fill("Validation-Accuracy>0,Attempts>=1");
    await page.getByText("8 trials", { exact: true }).waitFor();
    await page.getByText("--filter 'objective>0,attempts>=1'").waitFor();
    await page.getByRole("searchbox").fill("activation=");
    await page.getByRole("searchbox").fill("nothing=1");
    await page.getByRole("alert").getByText(/there is no field "nothing"/).waitFor();
  }));

test("a trial shows point, metrics, attempts, checkpoints and log", async () => {
  const number = await trialWithPreemption();
  await on(server, `${oneTrial}/${number}`, async (page) => {
    await page.getByRole("heading", { name: `digits-spot / ${number}` }).waitFor();
    await page.getByText(/attempts, \d+ preemption/).waitFor();
    await page.getByRole("link", { name: "Metrics" }).click();
    await page.getByRole("img", { name: /validation-accuracy: \d+ values/ }).waitFor();
    await page.getByRole("link", { name: "Attempts" }).click();
    await page.getByText("its spot machine was taken back").first().waitFor();
    await page.getByRole("link", { name: "log 1", exact: true }).waitFor();
    await page.getByRole("link", { name: "Checkpoints" }).click();
    await page.getByText(/\d+ of \d+ kept/).waitFor();
    await page.getByRole("link", { name: "Log", exact: true }).click();
    const attempt = await page.locator("label select").inputValue();
    const path = `experiments/digits-spot/trials/${number}/attempts/${attempt}/log`;
    const log = await (await fetch(`${server.url}/api/v1/namespaces/default/${path}`)).text();
    // It prints only where it goes on from a checkpoint.
    await page.getByText(log ? "This is all of it." : "It has printed nothing.").waitFor();
    if (!log) return assert.equal(await page.getByRole("log").count(), 0);
    assert.equal((await page.getByRole("log").innerText()).trim(), log.trim());
  });
});

test("keys walk from trial to trial", () =>
  on(server, `${oneTrial}/1`, async (page) => {
    const shown = (number) => Promise.all([
      page.getByRole("heading", { name: `digits-spot / ${number}` }).waitFor(),
      page.getByRole("link", { name: "Metrics" }).waitFor(), // it has been loaded
    ]);
    await shown(1);
    await page.keyboard.press("]");
    await shown(2);
    await page.keyboard.press("?");
    await page.getByRole("dialog").getByText("previous trial").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("[");
    await shown(1);
    await page.keyboard.press("u");
    await page.waitForURL(/#\/e\/default\/digits-spot$/);
  }));

test("what is not there is said in the server's words", () =>
  on(server, "#/e/default/nothing", async (page) => {
    await page.getByText(/nothing/).last().waitFor();
    await page.locator(".problem").first().waitFor();
  }, { expects: /404/ }));
