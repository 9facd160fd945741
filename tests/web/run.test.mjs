// `shirabe run --ui`: a page beside a run, in a terminal until Ctrl-C, elsewhere as long as it runs.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import { after, test } from "node:test";
import { PATIENCE, binary, exited, newHome, on } from "./harness.mjs";

// Ctrl-C is what a terminal makes of a byte: so the program gets a real one.
const TERMINAL = "import os, pty, sys; " +
  "sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
const children = [];
after(() => children.forEach((child) => child.kill("SIGKILL")));

// Trials that wait for a file: the run ends when the test says so.
function words(home, more = "echo loss=$1") {
  fs.writeFileSync(`${home}/trial.sh`,
    `while [ ! -e ${home}/go ]; do sleep 0.05; done\n${more}\n`);
  return ["run", "--name", "watched", "--param", "x=0..1", "--minimize", "loss",
    "--max-trials", "2", "-o", "json", "--ui", "--no-open"];
}

function start(home, list, terminal) {
  const command = ["--", "sh", `${home}/trial.sh`, "{x}"];
  const line = [binary, ...list, ...command];
  const child = terminal
    ? spawn("python3", ["-c", TERMINAL, "sh", "-c", `exec "$@" > "${home}/out"`, "sh", ...line],
      { env: { ...process.env, SHIRABE_HOME: home }, stdio: ["pipe", "pipe", "inherit"] })
    : spawn(line[0], line.slice(1),
      { env: { ...process.env, SHIRABE_HOME: home }, stdio: ["ignore", "ignore", "pipe"] });
  children.push(child);
  let seen = "";
  (terminal ? child.stdout : child.stderr).on("data", (text) => (seen += text));
  const until = async (what, found) => {
    for (let i = 0; i < PATIENCE / 50; ++i) {
      const value = found();
      if (value) return value;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return assert.fail(`${what}: ${seen}`);
  };
  return {
    child, until,
    seen: () => seen,
    page: async () => {
      const address = await until("no address",
        () => /(http:\/\/127\.0\.0\.1:\d+)\/(#token=\w+&\/e\/default\/watched)/.exec(seen));
      return { url: address[1], hash: address[2] };
    },
  };
}

const answers = (url) => fetch(`${url}/livez`).then((reply) => reply.ok, () => false);

test("in a terminal it stays after the run until Ctrl-C, and gives the run's result", async () => {
  const home = newHome();
  const run = start(home, words(home), true);
  const shown = await run.page();
  await on(shown, shown.hash, async (page) => {
    await page.getByRole("heading", { name: "watched" }).waitFor();
    await page.getByText("running", { exact: true }).first().waitFor();
    fs.writeFileSync(`${home}/go`, "");
    await page.getByText("succeeded", { exact: true }).first().waitFor();
    await run.until("no hint", () => run.seen().includes("the page stays until Ctrl-C"));
    await page.reload();
    await page.locator(".best-value").waitFor();
    assert.equal(run.child.exitCode, null);
    assert.match(JSON.stringify(JSON.parse(fs.readFileSync(`${home}/out`, "utf8"))), /watched-/);
  });
  run.child.stdin.write("\x03");
  assert.equal(await exited(run.child), 0);
  assert.equal(await answers(shown.url), false);
});

test("Ctrl-C while it runs stops the run, and the page with it", async () => {
  const home = newHome();
  const run = start(home, words(home), true);
  const { url } = await run.page();
  await run.until("no page", () => run.seen().includes("0/2") || run.seen().includes("running"));
  run.child.stdin.write("\x03\x03");
  assert.equal(await exited(run.child), 130);
  assert.equal(await answers(url), false);
});

test("a run without success says so after Ctrl-C, too", async () => {
  const home = newHome();
  const run = start(home, words(home, "exit 3"), true);
  const { url } = await run.page();
  fs.writeFileSync(`${home}/go`, "");
  await run.until("no hint", () => run.seen().includes("the page stays until Ctrl-C"));
  assert.equal(await answers(url), true);
  run.child.stdin.write("\x03");
  assert.equal(await exited(run.child), 8);
});

test("without a terminal it serves while it runs, and ends with the run", async () => {
  const home = newHome();
  const run = start(home, ["-q", ...words(home)].sort((a) => (a === "run" ? -1 : 0)), false);
  const { url } = await run.page();
  assert.equal(await answers(url), true);
  fs.writeFileSync(`${home}/go`, "");
  assert.equal(await exited(run.child), 0);
  assert.equal(await answers(url), false);
});

test("a port that is taken is an error before anything is stored", async () => {
  const home = newHome();
  const taken = net.createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => taken.once("listening", resolve));
  const shirabe = (...list) => spawnSync(binary, list, {
    env: { ...process.env, SHIRABE_HOME: home }, encoding: "utf8", timeout: PATIENCE,
  });
  const command = ["--", "sh", `${home}/trial.sh`, "{x}"];
  const refused = shirabe(...words(home), "--port", String(taken.address().port), ...command);
  assert.match(refused.stderr, /--port/);
  assert.notEqual(refused.status, 0);
  assert.equal(shirabe("get", "exp", "watched").status, 3);
  taken.close();
  const idle = words(home).filter((word) => !["--ui", "--no-open"].includes(word));
  const alone = shirabe(...idle, "--port", "1", ...command);
  assert.equal(alone.status, 2);
  assert.match(alone.stderr, /give --ui as well/);
});
