// Names, values and logs that were made to be more than text; and the defects of other dashboards,
// one by one (negative and tiny values, commas and quotes, missing steps, large arrays).
import assert from "node:assert/strict";
import fs from "node:fs";
import { before, test } from "node:test";
import { asked, newHome, on, serve, shirabe } from "./harness.mjs";

const HTML = "<img src=x onerror=\"window.executed=1\"><script>window.executed=1</script>";
const one = "/api/v1/namespaces/default/experiments/hostile";
let server;

before(async () => {
  const home = newHome();
  fs.writeFileSync(`${home}/trial.sh`, `#!/bin/sh
printf '\\033[31mred\\033[0m \\033]0;owned\\007title\\n'
printf '%s\\n' '${HTML.replaceAll("'", "")}'
printf 'progress 10 %%\\rprogress 99 %%\\r\\n'
head -c 10000000 /dev/zero | tr '\\0' 'x'
printf '\\nloss=0.5\\n'
`, { mode: 0o755 });
  shirabe(home, "run", "-q", "--name", "logs", "--param", "x=0..1", "--minimize", "loss",
    "--max-trials", "1", "--", `${home}/trial.sh`, "{x}");
  server = await serve({ home });
  await server.call("POST", "/api/v1/experiments", asked("hostile", {
    objective: { objectiveMetricName: HTML, additionalMetricNames: ["a,b \"c\""] },
    parameters: [
      { name: `${HTML}`, parameterType: "double", feasibleSpace: { min: "-5", max: "-1" } },
      { name: "opt, \"x\"", parameterType: "categorical",
        feasibleSpace: { list: ["=1+1", "a,b", "say \"hi\"", HTML] } },
    ],
  }));
  await server.call("POST", `${one}:annotate`, { note: `# ${HTML}`, addTags: ["<b>tag</b>"] });
  const values = [-1e-9, -12345.678, 3e-12, -7, 0, "NaN"];
  for (const [i, value] of values.entries()) {
    const { trial } = await server.call("POST", `${one}:ask`, { caller: `w${i}` });
    await server.call("POST", `${one}/trials/${trial.status.shirabe.number}:tell`, {
      metrics: { [HTML]: value, "a,b \"c\"": i }, step: 10 * i, end: "completed",
      message: HTML,
    });
  }
});

const unharmed = async (page) =>
  assert.equal(await page.evaluate(() => window.executed ?? null), null);

test("no page executes what a trial or a user wrote", async () => {
  for (const tab of ["", "/trials", "/analysis", "/curves", "/timeline", "/events",
    "/notes", "/specification"]) {
    await on(server, `#/e/default/hostile${tab}`, async (page) => {
      await page.getByRole("heading", { name: "hostile", exact: true }).waitFor();
      await page.waitForTimeout(500);
      await unharmed(page);
      assert.equal(await page.locator("img").count(), 0);
    });
  }
  await on(server, `#/t/default/hostile/1`, async (page) => {
    await page.getByText(HTML).first().waitFor();
    await unharmed(page);
  });
  await on(server, `#/e/${encodeURIComponent(HTML)}/${encodeURIComponent(HTML)}`, async (page) => {
    await page.getByText(HTML).first().waitFor();
    await unharmed(page);
  }, { expects: /400|404/ });
});

test("a log with HTML, control sequences and a line of ten megabytes is text", () =>
  on(server, "#/t/default/logs/1/log", async (page) => {
    await page.getByText("This is all of it.").waitFor();
    const log = await page.getByRole("log").innerText();
    assert.match(log, /^red title$/m);
    assert.ok(log.includes("<script>window.executed=1</script>"));
    assert.match(log, /^progress 99 %$/m);
    assert.match(log, /a line of \d+ characters/);
    assert.match(log, /loss=0.5/);
    assert.ok(log.length < 200_000, `${log.length} characters`);
    await unharmed(page);
  }));

test("negative, tiny and missing values keep their sign, size and place", () =>
  on(server, "#/e/default/hostile/trials?sort=objective", async (page) => {
    await page.locator(".grid-body .grid-row").nth(5).waitFor();
    const cells = await page.locator(".grid-body .grid-row").evaluateAll((rows) =>
      rows.map((row) => row.children[3].innerText));
    assert.deepEqual(cells.slice(0, 5), ["-12345.7", "-7", "-1e-9", "0", "3e-12"]);
    assert.ok(["–", "∞"].includes(cells[5]), cells[5]);
    // All of the axis is below zero, and the points are within the picture.
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByRole("img", { name: /6 trials; the best/ }).waitFor();
  }));

test("CSV holds commas and quotes as the standard has it, and one row a trial", () =>
  on(server, "#/e/default/hostile/trials", async (page) => {
    await page.locator(".grid-body .grid-row").first().waitFor();
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: /Download/ }).click();
    await page.getByRole("menuitem", { name: "CSV of what is shown" }).click();
    const text = fs.readFileSync(await (await download).path(), "utf8");
    const lines = text.trimEnd().split("\r\n");
    assert.equal(lines.length, 7);
    assert.ok(lines[0].includes('"param.opt, ""x"""'), lines[0]);
  }));

test("the filter reads a value with a comma in quotes, and is in the address", () =>
  on(server, "#/e/default/hostile/trials", async (page) => {
    await page.locator(".grid-body .grid-row").first().waitFor();
    const { items } = await server.call("GET", `${one}/trials`);
    const wanted = items.filter((trial) => trial.spec.parameterAssignments[1].value === "a,b");
    await page.getByRole("searchbox").fill('state!=Failed,trial>=1');
    await page.getByText("6 trials", { exact: true }).waitFor();
    await page.waitForURL(/filter=state%21%3DFailed/);
    assert.ok(wanted.length <= 6);
  }));
