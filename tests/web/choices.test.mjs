// What people choose on a page: columns, files, curves, what to compare with, several at once.
import assert from "node:assert/strict";
import fs from "node:fs";
import { before, test } from "node:test";
import { asked, newHome, on, serve } from "./harness.mjs";

let server;
before(async () => {
  server = await serve({ home: newHome(true) });
  for (const name of ["one", "two", "three"]) {
    await server.call("POST", "/api/v1/experiments", asked(name));
  }
});

const spot = "#/e/default/digits-spot";

const param = (page, name) =>
  page.evaluate((key) => new URLSearchParams(location.hash.split("?")[1]).get(key), name);

test("columns are chosen, and what is shown comes as JSON lines", () =>
  on(server, `${spot}/trials?sort=trial`, async (page) => {
    const attempts = page.getByRole("columnheader", { name: "Attempts" });
    await attempts.waitFor();
    await page.getByRole("button", { name: "Columns" }).click();
    const item = page.getByRole("menuitemcheckbox", { name: /Attempts$/ });
    await item.and(page.locator("[aria-checked=true]")).click();
    await attempts.waitFor({ state: "detached" });
    await item.and(page.locator("[aria-checked=false]")).click();
    await attempts.waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Download" }).click();
    const coming = page.waitForEvent("download");
    await page.getByRole("menuitem", { name: "JSON lines" }).click();
    const got = await coming;
    assert.equal(got.suggestedFilename(), "digits-spot.jsonl");
    const lines = fs.readFileSync(await got.path(), "utf8").trim().split("\n")
      .map((line) => JSON.parse(line));
    const { items } = await server.call("GET",
      "/api/v1/namespaces/default/experiments/digits-spot/trials");
    assert.equal(lines.length, items.length);
    assert.ok(lines.every((line, i) => line.trial === i + 1 && line.attempts >= 1));
  }));

test("curves are as many, over what and on which axes one says", () =>
  on(server, `${spot}/curves`, async (page) => {
    await page.getByText("8 of 8 trials shown: the best 20").waitFor();
    await page.getByLabel("Best", { exact: true }).fill("2");
    await page.keyboard.press("Enter");
    await page.getByText("2 of 8 trials shown: the best 2").waitFor();
    await page.getByLabel("Over").selectOption("time");
    await page.getByLabel("log x").check();
    assert.deepEqual(
      [await param(page, "top"), await param(page, "over"), await param(page, "xlog")],
      ["2", "time", "1"]);
  }));

test("nine trials are too many to compare, and it is said", () => {
  const trials = Array.from({ length: 9 }, (_, i) => `t=default/digits-spot/${i + 1}`).join("&");
  return on(server, `#/compare?${trials}`, async (page) => {
    await page.getByText("8 trials of 9: no more than 8 fit into a picture").waitFor();
  });
});

test("a specification stands beside another one, line by line", () =>
  on(server, `#/e/default/one/specification`, async (page) => {
    await page.getByLabel("Beside").selectOption("default/two");
    await page.getByText("2 lines differ").waitFor();
    await page.getByLabel("Beside").selectOption("default/digits-spot");
    await page.getByText(/lines differ/).waitFor();
    await page.locator("[class^=diff-]").first().waitFor();
  }));

test("what would be tried first is shown before anything is submitted", () =>
  on(server, "#/new?from=default/one", async (page) => {
    await page.getByRole("button", { name: "Show 5 suggestions" }).click();
    const panel = page.getByRole("region", { name: "What would be tried first" });
    await panel.getByText("lr").first().waitFor();
    const { items } = await server.call("GET", "/api/v1/experiments");
    assert.equal(items.length, 4, "nothing was stored");
  }));

test("the next five suggestions say why each was chosen", () =>
  on(server, "#/e/default/one", async (page) => {
    const panel = page.getByRole("region", { name: "Next suggestions" });
    await panel.getByText("random").first().waitFor();
    assert.equal(await panel.locator("li").count(), 5);
  }));

test("several experiments are stopped at once, after one question", () =>
  on(server, "", async (page) => {
    await page.getByLabel("Select two").check();
    await page.getByLabel("Select three").check();
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Stop 2 experiments?").waitFor();
    await dialog.getByRole("button", { name: "Stop", exact: true }).click();
    for (const name of ["two", "three"]) {
      await page.getByRole("row", { name }).getByText(/stopp|cancel/i).first().waitFor();
    }
    const { items } = await server.call("GET", "/api/v1/experiments");
    const of = (name) => items.find((one) => one.metadata.name === name);
    assert.equal(of("one").status.shirabe?.stopping ?? false, false);
  }));

test("nothing moves for those who ask for that", async () => {
  await server.call("POST", "/api/v1/namespaces/default/experiments/one:ask", { caller: "w" });
  for (const reducedMotion of ["no-preference", "reduce"]) {
    await on(server, "#/e/default/one/trials", async (page) => {
      await page.locator(".state.run .shape").first().waitFor();
      const moving = await page.evaluate(() => document.getAnimations().length);
      assert.equal(moving > 0, reducedMotion === "no-preference", `${reducedMotion}: ${moving}`);
    }, { reducedMotion });
  }
});

test("events are filtered", () =>
  on(server, `${spot}/events`, async (page) => {
    await page.getByRole("row").nth(2).waitFor();
    assert.ok(await page.getByText("normal", { exact: true }).count() > 0);
    await page.goto(`${server.url}/${spot}/events?events=type%3DWarning`);
    await page.getByText("warning").first().waitFor();
    assert.equal(await page.getByText("normal", { exact: true }).count(), 0);
  }));
