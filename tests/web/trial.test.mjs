// A trial's page beyond its records: what it runs, and what it has beside another one.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { newHome, on, serve } from "./harness.mjs";

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
