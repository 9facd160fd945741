// Every page without a violation of axe-core's rules, light and dark, wide and as narrow as a
// phone; and a walk with the keyboard alone.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { newHome, on, serve, violations } from "./harness.mjs";

let server;
before(async () => {
  server = await serve({ home: newHome(true) });
});

const PAGES = [
  ["experiments", "", ".grid-body .grid-row"],
  ["overview", "#/e/default/digits-spot", "canvas"],
  ["trials", "#/e/default/digits-spot/trials", ".grid-body .grid-row"],
  ["analysis", "#/e/default/digits-spot/analysis", ".slice canvas"],
  ["curves", "#/e/default/digits-spot/curves", ".chart canvas"],
  ["timeline", "#/e/default/digits-spot/timeline", ".lanes canvas"],
  ["events", "#/e/default/digits-spot/events", ".grid-body .grid-row"],
  ["specification", "#/e/default/digits-spot/specification", ".code"],
  ["trial", "#/t/default/digits-spot/3", ".lane"],
  ["metrics", "#/t/default/digits-spot/3/metrics", ".chart canvas"],
  ["log", "#/t/default/digits-spot/3/log", ".log, .empty"],
  ["attempts", "#/t/default/digits-spot/3/attempts", "tbody tr"],
  ["checkpoints", "#/t/default/digits-spot/3/checkpoints", "tbody tr"],
  ["compare", "#/compare?t=default/digits-spot/1&t=default/digits-spot/2", ".chart canvas"],
  ["capacity", "#/capacity", ".facts"],
  ["new", "#/new", ".form fieldset"],
];

for (const colorScheme of ["light", "dark"]) {
  for (const [name, address, there] of PAGES) {
    test(`${name}, ${colorScheme}: nothing that axe-core finds`, () =>
      on(server, address, async (page) => {
        await page.locator(there).first().waitFor();
        await page.waitForTimeout(150);
        assert.deepEqual(await violations(page), []);
      }, { colorScheme }));
  }
}

for (const [name, address, there] of [PAGES[0], PAGES[1]]) {
  test(`${name} on a phone: nothing to scroll sideways, nothing that axe-core finds`, () =>
    on(server, address, async (page) => {
      await page.locator(there).first().waitFor();
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= 390, `${wide} pixels wide`);
      assert.deepEqual(await violations(page), []);
    }, { viewport: { width: 390, height: 800 } }));
}

test("at 200 % zoom the list and the overview do not scroll sideways", async () => {
  for (const [, address, there] of [PAGES[0], PAGES[1]]) {
    await on(server, address, async (page) => {
      await page.locator(there).first().waitFor();
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= 700, `${wide} pixels wide`);
    }, { viewport: { width: 700, height: 450 }, deviceScaleFactor: 2 });
  }
});

test("the keyboard alone: search, walk, select, open, help, back", () =>
  on(server, "", async (page) => {
    await page.locator(".grid-body .grid-row").first().waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("spot");
    assert.equal(await page.getByRole("searchbox").inputValue(), "spot");
    await page.keyboard.press("Escape");
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.getByRole("toolbar").getByText("1 experiment selected").waitFor();
    await page.waitForURL(/sel=default%2Fdigits-spot/);
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/e\/default\/digits-spot/);
    await page.goBack();
    assert.equal(await page.getByRole("searchbox").inputValue(), "spot");
  }));

test("a key that follows Escape at once is the page's, not the closed dialog's", () =>
  on(server, "", async (page) => {
    await page.locator(".grid-body .grid-row").first().waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.evaluate(() => {
      const button = document.activeElement;
      button.closest("dialog").close();
      button.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    });
    await page.waitForURL(/#\/e\/default\/digits-spot/);
  }));

test("states differ by word and shape, not by colour alone", () =>
  on(server, "#/e/default/digits-spot/timeline", async (page) => {
    await page.locator(".legend .state").first().waitFor();
    const legend = await page.locator(".legend .state").evaluateAll((all) =>
      all.map((one) => [one.innerText.trim(), one.querySelector("path").getAttribute("d")]));
    assert.ok(legend.length >= 2);
    assert.equal(new Set(legend.map(([word]) => word)).size, legend.length);
    assert.equal(new Set(legend.map(([, shape]) => shape)).size, legend.length);
  }));
