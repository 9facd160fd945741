// On a phone: what stands at the top is small, and what one looks for first is whole.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { asked, newHome, on, serve } from "./harness.mjs";

const phone = { viewport: { width: 390, height: 844 } };
let server;
before(async () => {
  server = await serve({ home: newHome(true) });
});

const right = async (locator) => {
  const box = await locator.boundingBox();
  return box.x + box.width;
};

test("the bar has two rows, and the list shows state, progress and the best", () =>
  on(server, "", async (page) => {
    const row = page.getByRole("row", { name: /digits-spot/ });
    await row.getByText("8 / 8").waitFor();
    const bar = await page.locator("header.bar").boundingBox();
    assert.ok(bar.height < 100, `${bar.height} pixels`);
    for (const part of [row.locator(".progress-count"), row.locator(".best-cell b")]) {
      assert.ok(await right(part) <= 380, `${await right(part)}`);
    }
    const state = row.locator(".state");
    assert.ok(await right(state) <= await right(row.getByRole("gridcell").nth(2)));
    assert.ok(await right(page.getByRole("link", { name: "New experiment" }).first()) <= 390);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 390);
  }, phone));

// How many pixels of an element stand outside of the cell around it.
const cut = (locator) => locator.evaluate((one) => {
  const cell = one.closest("[role=gridcell]").getBoundingClientRect();
  const range = document.createRange();
  range.selectNodeContents(one);
  const text = range.getBoundingClientRect();
  return Math.max(cell.left - text.left, text.right - cell.right);
});

test("neither a state nor a long negative best is cut in the list", async () => {
  await server.call("POST", "/api/v1/experiments", asked("tiny"));
  const tiny = "/api/v1/namespaces/default/experiments/tiny";
  await server.call("POST", `${tiny}:ask`, { caller: "w" });
  await server.call("POST", `${tiny}/trials/1:tell`,
    { step: 1, metrics: { loss: -2.80123e-6 }, end: "completed" });
  await on(server, "", async (page) => {
    const best = page.getByRole("row", { name: /tiny/ }).locator(".best-cell b");
    await best.getByText("-2.8012e-6").waitFor();
    assert.ok(await cut(best) <= 0, `${await cut(best)} pixels of the best`);
    const state = page.getByRole("row", { name: /digits-spot/ }).locator(".state");
    assert.ok(await cut(state) <= 0, `${await cut(state)} pixels of the state`);
  }, phone);
});

test("the table of trials has the objective and its name in sight", () =>
  on(server, "#/e/default/digits-spot/trials", async (page) => {
    const head = page.getByRole("columnheader", { name: "validation-accuracy" });
    await head.waitFor();
    assert.ok(await right(head) <= 380);
    const cut = await head.getByRole("button").evaluate((one) => one.scrollWidth - one.clientWidth);
    assert.ok(cut <= 1, `${cut} pixels of it are cut`);
  }, phone));

test("the address of a trial under its experiment leads to the trial", () =>
  on(server, "#/e/default/digits-spot/trials/2/metrics?x=1", async (page) => {
    await page.getByRole("heading", { name: "digits-spot / 2" }).waitFor();
    await page.waitForURL(/#\/t\/default\/digits-spot\/2\/metrics\?x=1$/);
  }));

test("a trial's page is as wide as the phone, with both columns of its point", async () => {
  await server.call("POST", "/api/v1/experiments", asked("digits"));
  const digits = "/api/v1/namespaces/default/experiments/digits";
  for (const loss of [1 / 3, 2 / 3]) {
    const { trial } = await server.call("POST", `${digits}:ask`, { caller: `w${loss}` });
    await server.call("POST", `${digits}/trials/${trial.status.shirabe.number}:tell`,
      { step: 1, metrics: { loss }, end: "completed" });
  }
  await on(server, "#/t/default/digits/2", async (page) => {
    const column = page.getByRole("columnheader", { name: "Best, 1" });
    await column.waitFor();
    assert.ok(await right(column) <= 375, `${await right(column)}`);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 375);
  }, { viewport: { width: 375, height: 812 } });
});

// In words, in the place and the colours of other things that are empty; no bar of another colour.
test("a log without text says so, at its end and before there is any", () =>
  on(server, "#/t/default/digits-spot/1/log", async (page) => {
    let ends = true;
    await page.route(/\/attempts\/\d+\/log/, (route) =>
      ends ? route.fulfill({ body: "", contentType: "text/plain" }) : undefined);
    for (const words of ["It has printed nothing.", "No output yet"]) {
      await page.reload();
      await page.locator(".empty", { hasText: words }).waitFor();
      assert.equal(await page.locator(".log").count(), 0);
      assert.equal(await page.getByRole("log").count(), 0);
      ends = false; // the next request stays open
    }
  }));
