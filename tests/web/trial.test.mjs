// A trial's page beyond its records: what it runs, and what it has beside another one.
import assert from "node:assert/strict";
import fs from "node:fs";
import { before, test } from "node:test";
import { newHome, on, serve, shirabe } from "./harness.mjs";

let server;
before(async () => {
  server = await serve({ home: newHome(true) });
});

test("the specification of a trial is the template with its values", () =>
  on(server, "#/t/default/digits-spot/1", async (page) => {
    const { spec } = await server.call(
      "GET", "/api/v1/namespaces/default/experiments/digits-spot/trials/1");
    await page.getByRole("link", { name: "Specification", exact: true }).click();
    const text = await page.getByRole("group", { name: "Specification" }).innerText();
    const value = (name) => spec.parameterAssignments.find((one) => one.name === name).value;
    for (const name of ["lr", "batch-size"]) {
      assert.ok(text.includes(`--${name}=${value(name)}`), text);
    }
    assert.doesNotMatch(text, /\$\{trialParameters/);
  }));

test("a trial that failed shows the last lines that it printed", async () => {
  const home = newHome();
  fs.writeFileSync(`${home}/trial.sh`,
    "#!/bin/sh\nfor i in $(seq 30); do echo line $i; done\n" +
    "echo '<b>ValueError</b>: x' >&2\nexit 3\n", { mode: 0o755 });
  assert.throws(() => shirabe(home, "run", "-q", "--name", "broken", "--param", "x=0..1",
    "--minimize", "loss", "--max-trials", "1", "--", `${home}/trial.sh`, "{x}"));
  await on(await serve({ home }), "#/t/default/broken/1", async (page) => {
    const lines = page.getByRole("region", { name: "Last lines" });
    await lines.getByText("<b>ValueError</b>: x").waitFor();
    assert.match(await lines.innerText(), /^line 22$/m);
    assert.doesNotMatch(await lines.innerText(), /^line 21$/m);
    await lines.getByRole("link", { name: "its log" }).click();
    await page.getByRole("log").waitFor();
  });
});
