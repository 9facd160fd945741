// `shirabe ui`: of this machine's store, and of a server whose token the browser never gets.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, test } from "node:test";
import fs from "node:fs";
import { PATIENCE, asked, binary, exited, newHome, on, serve, shirabe, tokenFile } from "./harness.mjs";

const children = [];
after(() => children.forEach((child) => child.kill("SIGKILL")));

async function ui(home, ...words) {
  const child = spawn(binary, ["ui", "--no-open", ...words], {
    env: { ...process.env, SHIRABE_HOME: home }, stdio: ["ignore", "pipe", "pipe"],
  });
  children.push(child);
  let errors = "";
  child.stderr.on("data", (text) => (errors += text));
  const address = await new Promise((resolve, reject) => {
    let text = "";
    setTimeout(() => reject(new Error(`it says no address: ${errors}`)), PATIENCE).unref();
    child.stdout.on("data", (more) => {
      text += more;
      if (text.includes("\n")) resolve(text.trim());
    });
    child.once("exit", (code) => reject(new Error(`it ended with ${code}: ${errors}`)));
  });
  const url = new URL(address);
  return {
    url: url.origin, hash: url.hash, pid: child.pid,
    stop: async (signal = "SIGINT") => {
      child.kill(signal);
      return exited(child);
    },
  };
}

test("it shows the store of this machine, runs nothing, and leaves nothing behind", async () => {
  const home = newHome(true);
  const page = await ui(home, "digits-spot");
  await on(page, page.hash, async (shown) => {
    await shown.getByRole("heading", { name: "digits-spot" }).waitFor();
    assert.equal(await shown.evaluate(() => location.hash), "#/e/default/digits-spot");
  });
  const refused = await fetch(`${page.url}/api/v1/experiments`);
  assert.equal(refused.status, 401);
  const token = /token=([^&]*)/.exec(page.hash)[1];
  const asUser = { Authorization: `Bearer ${token}` };
  assert.equal((await fetch(`${page.url}/api/v1/experiments`, { headers: asUser })).status, 200);
  // A name under which an attacker's page could reach it.
  const origin = { ...asUser, Origin: "http://evil.example" };
  assert.equal((await fetch(`${page.url}/api/v1/experiments`, { headers: origin })).status, 403);
  assert.equal(fs.statSync(`${home}/ui-token`).mode & 0o077, 0);
  assert.equal(await page.stop(), 0);
  await assert.rejects(fetch(`${page.url}/livez`));
});

test("what is asked for there is done: an experiment of the store is deleted", async () => {
  const home = newHome(true);
  const page = await ui(home);
  await on(page, page.hash, async (shown) => {
    await shown.getByRole("checkbox", { name: "Select digits-spot" }).check();
    await shown.getByRole("button", { name: "Delete" }).click();
    await shown.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await shown.getByText("No experiments yet").waitFor();
  });
  await page.stop();
  assert.equal(shirabe(home, "get", "exp", "-o", "name").trim(), "");
});

test("of a server it is a proxy, whose token stays out of the browser", async () => {
  const secret = "the-servers-own-token-1";
  const server = await serve({ home: newHome(), tokens: [secret] });
  await server.call("POST", "/api/v1/experiments", asked("remote"));
  const grpc = JSON.parse(fs.readFileSync(`${server.home}/ready`, "utf8")).grpc;
  const mine = newHome();
  const file = tokenFile(fs.mkdtempSync(`${mine}/t-`), [secret]);
  const page = await ui(mine, "remote", "--server", grpc, "--token-file", file);
  assert.ok(!page.hash.includes(secret));
  await on(page, page.hash, async (shown) => {
    await shown.getByRole("heading", { name: "remote" }).waitFor();
    await shown.getByText("No trials yet", { exact: true }).waitFor();
    const one = "/api/v1/namespaces/default/experiments/remote";
    const { trial } = await server.call("POST", `${one}:ask`, { caller: "w" });
    await server.call("POST", `${one}/trials/${trial.status.shirabe.number}:tell`,
      { metrics: { loss: 0.75 }, end: "completed" });
    await shown.locator(".best-value", { hasText: "0.75" }).waitFor();
    await shown.getByRole("button", { name: "Pause" }).click();
    await shown.getByText("paused", { exact: true }).first().waitFor();
  });
  assert.equal(await page.stop("SIGTERM"), 0);
});

// Its own token opens everything; what is offered is what the server allows the user.
test("of a server it knows what its user may do there, and offers nothing else", async () => {
  const [admin, mine] = ["the-administrators-token-1", "the-token-of-red-0001"];
  const server = await serve({ home: newHome(), tokens: [admin, `user red ${mine}`] });
  const red = JSON.parse(asked("theirs"));
  red.metadata.namespace = "red";
  await server.call("POST", "/api/v1/namespaces/red/experiments", red);
  const grpc = JSON.parse(fs.readFileSync(`${server.home}/ready`, "utf8")).grpc;
  const home = newHome();
  const rights = async (words, query) => {
    const page = await ui(home, "--server", grpc, ...words);
    const token = /token=([^&]*)/.exec(page.hash)[1];
    const reply = await fetch(`${page.url}/api/v1/rights${query}`,
      { headers: { Authorization: `Bearer ${token}` } });
    assert.equal(reply.status, 200);
    await page.stop();
    return reply.json();
  };
  const none = { read: false, create: false, change: false, delete: false };
  const every = { read: true, create: true, change: true, delete: true };
  const file = tokenFile(fs.mkdtempSync(`${home}/t-`), [mine]);
  const asRed = ["--token-file", file];
  assert.deepEqual(await rights(asRed, ""), { name: "user of red", namespace: "red", ...every });
  assert.deepEqual(await rights(asRed, "?namespace=default"),
    { name: "user of red", namespace: "default", ...none });
  const asAdmin = ["--token-file", tokenFile(fs.mkdtempSync(`${home}/t-`), [admin])];
  assert.deepEqual(await rights(asAdmin, "?namespace=default"),
    { name: "admin", namespace: "default", ...every });
});

test("a name that is not there is said at once", async () => {
  await assert.rejects(ui(newHome(true), "digits-spott"), /ended with 3.*digits-spott/s);
});
