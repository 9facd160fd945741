// What follows an experiment (spec.shirabe.onSuccess), on its overview: awaited, running,
// succeeded, failed with its reason, and where nothing follows.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { before, test } from "node:test";
import { newHome, on, serve, violations } from "./harness.mjs";

const HELD = "follow-held", GATE = "follow-gate";
let home, server;

// The example, whose job first waits for a file and then does `then`; so does each trial of one
// that is `held`.
function example(name, { then, held = false }) {
  const file = (word) => path.join(home, `${word}-${name}`);
  const wait = (word) => `until [ -e ${file(word)} ]; do sleep 0.05; done; `;
  return fs.readFileSync("deploy/examples/deploy.yaml", "utf8")
    .replace("/tmp/shirabe-served", file("served"))
    .replace("\n  name: deploy\n", `\n  name: ${name}\n`)
    .replace("backoffLimit: 2", "backoffLimit: 0")
    .replace('mkdir -p "$SERVED"', `${wait(GATE)}${then}; mkdir -p "$SERVED"`)
    .replace("for step in 1 2 3; do", `${held ? wait(HELD) : ""}for step in 1 2 3; do`);
}

const open = (word, name) => fs.writeFileSync(path.join(home, `${word}-${name}`), "");
const create = (name, how) => server.call("POST", "/api/v1/experiments", example(name, how));
const panelOf = (page) => page.getByRole("region", { name: "What follows", exact: true });

before(async () => {
  home = newHome();
  server = await serve({ home });
});

test("it is awaited, runs, and has succeeded, without a reload", async () => {
  await create("deploy", { then: "true", held: true });
  await on(server, "#/e/default/deploy", async (page) => {
    const panel = panelOf(page);
    await panel.getByText("It is run once the experiment has succeeded.").waitFor();
    open(HELD, "deploy");
    await panel.getByText("running", { exact: true }).waitFor();
    await panel.getByText("Running for").waitFor();
    await panel.getByText("shirabe logs deploy/on-success").waitFor();
    assert.equal(await panel.getByRole("log").count(), 0);
    await panel.getByRole("button", { name: "Show the log" }).click();
    await panel.getByText("No output yet").waitFor();
    open(GATE, "deploy");
    await panel.getByRole("log").getByText(/^serving deploy-\d/).waitFor();
    await panel.getByText("succeeded", { exact: true }).waitFor();
    const { status } = await server.call(
      "GET", "/api/v1/namespaces/default/experiments/deploy");
    const trial = status.currentOptimalTrial.bestTrialName.split("-").at(-1);
    const link = panel.getByRole("link", { name: `trial ${trial}`, exact: true });
    assert.equal(await link.getAttribute("href"), `#/t/default/deploy/${trial}`);
    assert.match(await panel.innerText(), /a copy of its checkpoint of step 3\./);
    assert.match(await panel.innerText(), /Attempts\s*1\s*0 ended with an error, 0 preemptions/);
    await panel.getByRole("button", { name: /more$/ }).click();
    await page.getByRole("menuitem", { name: "As table" }).click();
    await panel.getByRole("row", { name: /^State succeeded/ }).waitFor();
  });
});

test("the log of an attempt has an address, is text and nothing else, and goes away again",
  async () => {
    await create("printing", { then: "echo '<b>bold</b>'; printf '\\033[31mred\\033[0m\\n'" });
    open(GATE, "printing");
    await on(server, "#/e/default/printing?job=1", async (page) => {
      const panel = panelOf(page);
      await panel.getByText("This is all of it.").waitFor();
      const text = await panel.getByRole("log").innerText();
      assert.match(text, /^<b>bold<\/b>\nred\n/);
      assert.equal(await panel.getByRole("log").locator("b").count(), 0);
      assert.deepEqual(await violations(page), []);
      await panel.getByRole("button", { name: "Hide the log" }).click();
      assert.equal(await panel.getByRole("log").count(), 0);
      assert.doesNotMatch(await page.evaluate(() => location.hash), /job=/);
    });
    // An attempt that there is not is none.
    for (const wrong of ["2", "-1", "0", "1e9", "../../trials/1"]) {
      await on(server, `#/e/default/printing?job=${encodeURIComponent(wrong)}`, async (page) => {
        await panelOf(page).getByRole("button", { name: "Show the log" }).waitFor();
        assert.equal(await panelOf(page).getByRole("log").count(), 0);
      });
    }
  });

test("one that failed says why, light and dark", async () => {
  await create("broken", { then: "exit 3" });
  open(GATE, "broken");
  for (const colorScheme of ["light", "dark"]) {
    await on(server, "#/e/default/broken", async (page) => {
      const panel = panelOf(page);
      await panel.getByText("failed", { exact: true }).waitFor();
      const { status } = await server.call(
        "GET", "/api/v1/namespaces/default/experiments/broken");
      const { message } = status.shirabe.onSuccess;
      assert.match(message, /\b3\b/);
      await panel.getByText(message).waitFor();
      await panel.getByText("1 ended with an error").waitFor();
      assert.deepEqual(await violations(page), []);
    }, { colorScheme });
  }
});

test("the list says of which experiment the job failed", async () => {
  await on(server, "#/", async (page) => {
    const row = (name) => page.getByRole("row").filter({
      has: page.getByRole("link", { name, exact: true }) });
    await row("broken").getByText("its onSuccess job failed").waitFor();
    assert.equal(await row("deploy").getByText("its onSuccess job failed").count(), 0);
  });
});

test("of an experiment that was stopped nothing follows, and of one without a job nothing is said",
  async () => {
    await create("halted", { then: "echo on", held: true });
    await server.call("POST", "/api/v1/namespaces/default/experiments/halted:stop");
    await on(server, "#/e/default/halted", async (page) => {
      const panel = panelOf(page);
      await panel.getByText("skipped", { exact: true }).waitFor();
    });
    const plain = example("plain", { then: "echo on" })
      .replace(/\n {4}onSuccess:[^]*?(?=\n {2}\w)/, "");
    assert.ok(!/\n +onSuccess:/.test(plain));
    await server.call("POST", "/api/v1/experiments", plain);
    await on(server, "#/e/default/plain", async (page) => {
      await page.getByRole("region", { name: "Now", exact: true }).waitFor();
      assert.equal(await panelOf(page).count(), 0);
    });
  });
