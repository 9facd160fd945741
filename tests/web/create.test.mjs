// A new experiment: the form and the YAML follow each other, mistakes as one types, suggestions
// before anything is stored, and creating it.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { asked, newHome, on, serve } from "./harness.mjs";

let server;
before(async () => {
  server = await serve({ home: newHome() });
});

test("each example is valid as it stands", () =>
  on(server, "#/new", async (page) => {
    const chooser = page.getByLabel("Begin with");
    await page.getByText("valid", { exact: true }).waitFor();
    const names = (await chooser.locator("option").allInnerTexts()).slice(1);
    assert.ok(names.length >= 3);
    for (const name of names) {
      await chooser.selectOption(name);
      await page.waitForFunction((text) =>
        document.querySelector("textarea").value !== text, "");
      await page.waitForTimeout(400);
      await page.getByText("valid", { exact: true }).waitFor();
    }
  }));

test("the form changes the YAML, and the YAML the form", () =>
  on(server, "#/new?from=trials+that+you+run+yourself", async (page) => {
    await page.getByText("valid", { exact: true }).waitFor();
    const yaml = page.getByRole("textbox", { name: "YAML" });
    const name = page.getByLabel("Name").first();
    await name.fill("from-the-form");
    await name.press("Tab");
    await page.waitForFunction(() =>
      document.querySelector("textarea").value.includes("name: from-the-form"));
    const text = await yaml.inputValue();
    assert.match(text, /temperature/);
    await yaml.fill(text.replace("name: from-the-form", "name: from-the-yaml"));
    await page.waitForFunction(() =>
      document.querySelector(".form input").value === "from-the-yaml");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.waitForFunction(() =>
      document.querySelector("textarea").value.includes("parameter-3"));
    await page.getByRole("button", { name: "Remove parameter-3" }).click();
    await page.getByText("valid", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Show 5 suggestions" }).click();
    await page.locator(".candidates li").nth(4).waitFor();
    assert.equal((await server.call("GET", "/api/v1/experiments")).items.length, 0);
    await page.getByRole("button", { name: "Create" }).click();
    await page.waitForURL(/#\/e\/default\/from-the-yaml$/);
    await page.getByRole("heading", { name: "from-the-yaml" }).waitFor();
  }));

test("mistakes come as one types, with their line, and nothing can be created", () =>
  on(server, "#/new?from=trials+that+you+run+yourself", async (page) => {
    await page.getByText("valid", { exact: true }).waitFor();
    const yaml = page.getByRole("textbox", { name: "YAML" });
    const text = await yaml.inputValue();
    await yaml.fill(text.replace("type: minimize", "type: minimise"));
    const finding = page.getByRole("list", { name: /What the server says/ });
    await finding.getByText(/line \d+: .*minimi[sz]e/).first().waitFor();
    assert.equal(await page.getByRole("button", { name: "Create" }).isDisabled(), true);
    await finding.getByRole("button").first().click();
    const line = await page.evaluate(() => {
      const area = document.querySelector("textarea");
      return area.value.slice(0, area.selectionStart).split("\n").length;
    });
    assert.match((await yaml.inputValue()).split("\n")[line - 1], /minimise/);
  }));

test("another experiment is a beginning, under a new name", async () => {
  await server.call("POST", "/api/v1/experiments", asked("first"));
  await on(server, "#/e/default/first", async (page) => {
    await page.getByRole("link", { name: "New from this" }).click();
    await page.getByText("valid", { exact: true }).waitFor();
    assert.match(await page.getByRole("textbox", { name: "YAML" }).inputValue(), /name: first-2/);
  });
});
