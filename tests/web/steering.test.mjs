// What people do by hand: stop a trial, try a point of their own, write notes and tags.
import assert from "node:assert/strict";
import { test } from "node:test";
import { asked, newHome, on, serve } from "./harness.mjs";

const one = "/api/v1/namespaces/default/experiments/steered";
const HTML = '<img src=x onerror="window.executed=1">';

async function served() {
  const server = await serve({ home: newHome() });
  await server.call("POST", "/api/v1/experiments", asked("steered"));
  const { trial } = await server.call("POST", `${one}:ask`, { caller: "w" });
  await server.call("POST", `${one}/trials/${trial.status.shirabe.number}:tell`,
    { metrics: { loss: 0.5 }, step: 1 });
  return server;
}

test("a trial is stopped, after a question, and keeps its value", async () => {
  const server = await served();
  await on(server, "#/t/default/steered/1", async (page) => {
    await page.getByRole("button", { name: "Stop this trial" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Stop this trial" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Stop this trial" }).click();
    await page.getByText("stopped by a user").waitFor();
    await page.getByRole("button", { name: "Retry" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Stop this trial" }).count(), 0);
  });
  const trial = await server.call("GET", `${one}/trials/1`);
  assert.equal(trial.status.shirabe.phase, "EarlyStopped");
  assert.equal(trial.status.shirabe.objective, 0.5);
});

test("a point of one's own is a trial like another, but for what was changed", async () => {
  const server = await served();
  const first = await server.call("GET", `${one}/trials/1`);
  await on(server, "#/t/default/steered/1", async (page) => {
    await page.getByRole("button", { name: "Try with changes" }).click();
    await page.getByLabel("lr").fill("7");
    await page.getByRole("button", { name: "Try", exact: true }).click();
    await page.getByRole("alert").filter({ hasText: "lr" }).waitFor(); // it is out of range
    await page.getByLabel("lr").fill("0.25");
    await page.getByText("shirabe try steered --like 1 --param lr=0.25").waitFor();
    await page.getByRole("button", { name: "Try", exact: true }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }, { expects: /400/ });
  const { trial } = await server.call("POST", `${one}:ask`, { caller: "v" });
  const [lr, opt] = trial.spec.parameterAssignments;
  assert.equal(lr.value, "0.25");
  assert.equal(opt.value, first.spec.parameterAssignments[1].value);
});

test("notes are a subset of Markdown, tags come and go, and nothing of it is executed", async () => {
  const server = await served();
  await on(server, "#/e/default/steered/notes", async (page) => {
    await page.getByText("No note yet").waitFor();
    await page.getByRole("button", { name: "Write a note" }).click();
    await page.getByRole("textbox", { name: "Note", exact: true }).fill(
      `# Plan\n\nfirst **lr** ${HTML}\n\n- one\n- [here](#/t/default/steered/1)\n` +
      "- [there](https://example.com/) ![x](https://example.com/x.png)\n");
    await page.getByRole("button", { name: "Write", exact: true }).click();
    await page.getByRole("textbox", { name: "Note", exact: true }).waitFor({ state: "detached" });
    await page.getByRole("heading", { name: "Plan" }).waitFor();
    await page.locator(".markdown strong", { hasText: "lr" }).waitFor();
    await page.getByText(HTML).waitFor();
    assert.equal(await page.locator("img").count(), 0);
    assert.equal(await page.evaluate(() => window.executed ?? null), null);
    await page.locator('.markdown a[href="#/t/default/steered/1"]').waitFor();
    const links = await page.locator(".markdown a").evaluateAll((all) =>
      all.map((link) => link.getAttribute("href")));
    assert.deepEqual(links, ["#/t/default/steered/1"]);
    await page.getByRole("textbox", { name: "New tag" }).fill("thesis");
    await page.getByRole("button", { name: "Add" }).click();
    await page.getByRole("button", { name: "Remove the tag thesis" }).waitFor();
  });
  await on(server, "#/?filter=thes", async (page) => {
    await page.getByRole("link", { name: "steered thesis", exact: true }).waitFor();
    await page.getByRole("searchbox").fill("another");
    await page.getByRole("link", { name: "steered thesis" }).waitFor({ state: "detached" });
  });
  await on(server, "#/e/default/steered/notes", async (page) => {
    await page.getByRole("button", { name: "Remove the tag thesis" }).click();
    await page.getByRole("button", { name: "Remove the tag thesis" })
      .waitFor({ state: "detached" });
  });
  await on(server, "#/t/default/steered/1/notes", async (page) => {
    await page.getByRole("textbox", { name: "New tag" }).fill("odd");
    await page.getByRole("button", { name: "Add" }).click();
    await page.getByRole("button", { name: "Remove the tag odd" }).waitFor();
  });
  const trial = await server.call("GET", `${one}/trials/1`);
  assert.deepEqual(trial.status.shirabe.tags, ["odd"]);
});

test("who writes a note learns that another one has come meanwhile", async () => {
  const server = await served();
  await on(server, "#/e/default/steered/notes", async (page) => {
    await page.getByRole("button", { name: "Write a note" }).click();
    await page.getByRole("textbox", { name: "Note", exact: true }).fill("mine");
    await server.call("POST", `${one}:annotate`, { note: "theirs" });
    await page.getByText("Another person has written the note meanwhile").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByText("theirs").waitFor();
  });
});

test("one that was stopped says so, on its page and in the list", async () => {
  const server = await served();
  await server.call("POST", `${one}/trials/1:tell`, { end: "completed" });
  await server.call("POST", `${one}:stop`);
  await on(server, "#/e/default/steered", async (page) => {
    const banner = page.locator(".banner", { hasText: "Why it ended" });
    await banner.waitFor();
    const { status } = await server.call("GET", one);
    const { message } = status.conditions.at(-1);
    assert.match(await banner.innerText(), new RegExp(message));
    // No button that would be refused.
    await page.goto(`${server.url}/#/t/default/steered/1/notes`);
    await page.getByRole("button", { name: "Write a note" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Retry" }).count(), 0);
    await page.goto(`${server.url}/#/`);
    await page.locator(".why-cell small", { hasText: message }).waitFor();
  });
});

test("a note that is being written waits for its writer, each with its own trial", async () => {
  const server = await served();
  await server.call("POST", `${one}:ask`, { caller: "v" });
  await on(server, "#/t/default/steered/1/notes", async (page) => {
    await page.getByRole("button", { name: "Write a note" }).click();
    const text = page.getByRole("textbox", { name: "Note", exact: true });
    await text.fill("half of it");
    await page.getByRole("link", { name: "Attempts", exact: true }).click();
    await page.getByRole("link", { name: "Notes", exact: true }).click();
    assert.equal(await text.inputValue(), "half of it");
    await page.getByRole("link", { name: "Next" }).click();
    await page.getByRole("heading", { name: "steered / 2" }).waitFor();
    await page.getByRole("button", { name: "Write a note" }).waitFor();
    await page.goBack();
    await page.reload();
    assert.equal(await text.inputValue(), "half of it");
    await page.getByRole("button", { name: "Write", exact: true }).click();
    await text.waitFor({ state: "detached" }); // it is written: the preview has its words as well
    await page.locator(".markdown", { hasText: "half of it" }).waitFor();
    await page.reload();
    await page.getByRole("button", { name: "Edit" }).waitFor();
    assert.equal(await text.count(), 0);
  });
});

test("a note that was written is shown at once", async () => {
  const server = await served();
  await on(server, "#/e/default/steered/notes", async (page) => {
    await page.getByText("No note yet").waitFor();
    // What is loaded until then is as it was before.
    const before = await server.call("GET", one);
    await page.route(new RegExp(`${one}$`), (route) => route.fulfill({ json: before }));
    const text = page.getByRole("textbox", { name: "Note", exact: true });
    await page.getByRole("button", { name: "Write a note" }).click();
    await text.fill("the first");
    const loaded = page.waitForResponse(new RegExp(`${one}$`));
    await page.getByRole("button", { name: "Write", exact: true }).click();
    await text.waitFor({ state: "detached" });
    await loaded;
    assert.equal(await page.locator(".markdown").innerText(), "the first");
    await page.getByRole("button", { name: "Edit" }).click();
    assert.equal(await text.inputValue(), "the first");
    assert.equal(await page.getByText("Another person has written").count(), 0);
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.unroute(new RegExp(`${one}$`));
    await server.call("POST", `${one}:annotate`, { note: "another" });
    await page.locator(".markdown", { hasText: "another" }).waitFor();
  });
});
