// A server with a store of its own, and a browser that fails a test for whatever it complains of.
import { spawn, spawnSync } from "node:child_process";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after } from "node:test";
import { createRequire } from "node:module";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const axeSource = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const work = process.env.WEB_TEST_DIR;
export const binary = process.env.SHIRABE_BINARY;
export const PATIENCE = 20_000;

const closers = [];
after(async () => {
  for (const close of closers.reverse()) await close();
});

// The exit status of a program that is asked to end. One that does not is killed, and the test
// fails: nothing waits without an end.
export async function exited(child) {
  const ended = child.exitCode ?? child.signalCode;
  if (ended !== null) return ended;
  const status = await new Promise((resolve) => {
    const timer = setTimeout(() => resolve("nothing"), PATIENCE);
    child.once("exit", (code, signal) => {
      clearTimeout(timer);
      resolve(code ?? signal);
    });
  });
  if (status === "nothing") child.kill("SIGKILL");
  assert.notEqual(status, "nothing", `${child.spawnargs.join(" ")}: still runs`);
  return status;
}

export function tokenFile(home, lines) {
  const file = path.join(home, "token");
  fs.writeFileSync(file, lines.join("\n") + "\n", { mode: 0o600 });
  return file;
}

// A home of its own; with `from` that of run.sh, with digits-spot in it.
export function newHome(from = false) {
  const home = fs.mkdtempSync(path.join(work, "home-"));
  if (from) fs.cpSync(path.join(work, "home"), home, { recursive: true });
  return home;
}

class Server {
  constructor(options) {
    Object.assign(this, { args: [], port: 0, ...options });
  }
  async start() {
    const ready = path.join(this.home, "ready");
    fs.rmSync(ready, { force: true });
    const open = this.tokens === undefined;
    const words = [
      "serve", "--grpc", "127.0.0.1:0", "--http", `127.0.0.1:${this.port}`, "--ready-file", ready,
      ...(open ? ["--insecure"] : ["--token-file", tokenFile(this.home, this.tokens)]),
      ...this.args,
    ];
    this.process = spawn(binary, words, {
      env: { ...process.env, SHIRABE_HOME: this.home }, stdio: ["ignore", "ignore", "pipe"],
    });
    let errors = "";
    this.process.stderr.on("data", (text) => (errors += text));
    for (let i = 0; !fs.existsSync(ready) || fs.statSync(ready).size === 0; ++i) {
      assert.ok(i < 400 && this.process.exitCode === null, `the server did not start: ${errors}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const address = JSON.parse(fs.readFileSync(ready, "utf8")).http;
    this.port = Number(address.split(":").at(-1));
    this.url = `http://127.0.0.1:${this.port}`;
    return this;
  }
  async stop(signal = "SIGTERM") {
    this.process.kill(signal);
    await exited(this.process);
  }
  // A request beside the browser.
  async call(method, target, body, token = this.tokens?.[0]) {
    const response = await fetch(`${this.url}${target}`, {
      method,
      headers: {
        ...(token ? { Authorization: `Bearer ${token}` } : {}),
        ...(body === undefined ? {} : { "Content-Type": "application/yaml" }),
      },
      body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
    });
    const text = await response.text();
    assert.ok(response.ok, `${method} ${target}: ${response.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }
}

export async function serve(options) {
  const server = await new Server(options).start();
  closers.push(() => server.stop());
  return server;
}

export function shirabe(home, ...words) {
  const done = spawnSync(binary, words, {
    env: { ...process.env, SHIRABE_HOME: home }, encoding: "utf8", timeout: 3 * PATIENCE,
  });
  assert.equal(done.status, 0, `${words.join(" ")}: ${done.error ?? done.stderr}`);
  return done.stdout;
}

// An experiment whose trials the test itself runs.
export function asked(name, more = {}) {
  return JSON.stringify({
    apiVersion: "kubeflow.org/v1beta1",
    kind: "Experiment",
    metadata: { name },
    spec: {
      objective: { type: "minimize", objectiveMetricName: "loss", ...more.objective },
      algorithm: { algorithmName: "random" },
      parameters: more.parameters ?? [
        { name: "lr", parameterType: "double",
          feasibleSpace: { min: "0.001", max: "1", distribution: "logUniform" } },
        { name: "opt", parameterType: "categorical",
          feasibleSpace: { list: ["adam", 'sgd, "slow"'] } },
      ],
      maxTrialCount: more.trials ?? 20,
      parallelTrialCount: 8,
      ...more.spec,
      shirabe: { askAndTell: true, seed: 3, ...more.shirabe },
    },
  });
}

let browser;
export async function theBrowser() {
  if (!browser) {
    browser = await chromium.launch({
      executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage"],
    });
    closers.push(() => browser.close());
  }
  return browser;
}

// Files that are not built into the program yet, under the server's own headers.
async function serveFiles(context, folder) {
  let policy; // asked for once: the server may be away later
  await context.route(/^http:\/\/127\.0\.0\.1:\d+\/(assets\/[^?]*)?$/, async (route) => {
    const name = new URL(route.request().url()).pathname.slice(1) || "index.html";
    policy ??= (await fetch(new URL("/", route.request().url()))).headers
      .get("content-security-policy");
    const types = {
      html: "text/html", js: "text/javascript", css: "text/css", svg: "image/svg+xml",
    };
    await route.fulfill({
      body: fs.readFileSync(path.join(folder, name)),
      contentType: types[name.split(".").at(-1)],
      headers: { "content-security-policy": policy },
    });
  });
}

// A page whose complaints are kept: errors, refusals of the content policy, requests elsewhere.
// Of a server, or of a file, whose url is all of its address.
export async function open(server, address = "", { file = false, ...options } = {}) {
  const context = await (await theBrowser()).newContext({
    viewport: { width: 1400, height: 900 }, permissions: ["clipboard-read", "clipboard-write"],
    ...options,
  });
  if (process.env.WEB_DIST) await serveFiles(context, process.env.WEB_DIST);
  const page = await context.newPage();
  page.complaints = [];
  page.on("console", (message) => {
    const expected = options.expects?.test(message.text()) ?? false;
    if (message.type() === "error" && !expected) page.complaints.push(message.text());
  });
  page.on("pageerror", (error) => page.complaints.push(String(error.stack ?? error)));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(server.url) && !/^(data|blob):/.test(url)) page.complaints.push(url);
  });
  page.setDefaultTimeout(PATIENCE);
  await page.goto(`${server.url}${file ? "" : "/"}${address}`);
  return page;
}

export async function close(page) {
  const { complaints } = page;
  await page.context().close();
  assert.deepEqual(complaints, []);
}

// Opens, does, closes; keeps a picture where that failed.
export async function on(server, address, act, options = {}) {
  const page = await open(server, address, options);
  try {
    await act(page);
  } catch (error) {
    const file = path.join(work, `failed-${Date.now()}.png`);
    await page.screenshot({ path: file }).catch(() => undefined);
    error.message += `\n${page.complaints.join("\n")}\npicture: ${file}`;
    throw error;
  }
  await close(page);
}

export async function violations(page) {
  await page.evaluate(axeSource);
  const result = await page.evaluate(() => window.axe.run(document, {
    resultTypes: ["violations"],
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
  }));
  return result.violations.map((one) =>
    `${one.id}: ${one.help}\n${one.nodes.slice(0, 3).map((node) =>
      `  ${node.target.join(" ")} ${node.any.map((any) => any.message).join("; ")}`).join("\n")}`,
  );
}
