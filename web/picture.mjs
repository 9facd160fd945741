// The picture in README.md: the overview of deploy/examples/digits-spot.yaml after a real run.
//   node web/picture.mjs BINARY      makes docs/dashboard.png and docs/dashboard.sha256
// WEB_DIST=DIR (of build.mjs --out DIR): the page in it instead of the one that is built in.
//   node web/picture.mjs --check     fails if what it shows has been changed since
// The hash is of what decides how the picture looks; the numbers in it are those of one run.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), "..");
const PICTURE = "docs/dashboard.png";
const RECORD = "docs/dashboard.sha256";
const MOST = 150_000;
const INPUTS = [
  "deploy/examples/digits-spot.yaml", "deploy/examples/nodes.yaml", "web/picture.mjs",
  "web/src/pages/experiment.tsx", "web/src/shell.tsx", "web/src/style/base.css",
  "web/src/style/parts.css", "web/src/style/pictures.css", "web/src/style/views.css",
  "web/src/tabs/history.tsx", "web/src/tabs/overview.tsx", "web/src/ui/panel.tsx",
];

// One line a file, as sha256sum writes and reads it.
function record() {
  return [...INPUTS, PICTURE].map((name) => {
    const bytes = fs.readFileSync(path.join(root, name));
    return `${createHash("sha256").update(bytes).digest("hex")}  ${name}\n`;
  }).join("");
}

function check() {
  const known = fs.readFileSync(path.join(root, RECORD), "utf8").split("\n");
  const changed = record().split("\n").filter((line) => !known.includes(line))
    .map((line) => line.split("  ")[1]);
  const size = fs.statSync(path.join(root, PICTURE)).size;
  if (size > MOST) throw new Error(`${PICTURE} has ${size} bytes, more than ${MOST}`);
  if (changed.length > 0) {
    throw new Error(`${PICTURE} is older than ${changed.join(", ")}: ` +
      "look whether it still shows the page, and make it again: node web/picture.mjs BINARY");
  }
}

async function served(binary, home) {
  const ready = path.join(home, "ready");
  const server = spawn(binary, ["serve", "--insecure", "--grpc", "127.0.0.1:0", "--http",
    "127.0.0.1:0", "--ready-file", ready],
  { env: { ...process.env, SHIRABE_HOME: home }, stdio: "ignore" });
  for (let i = 0; !fs.existsSync(ready) || fs.statSync(ready).size === 0; ++i) {
    if (i > 400 || server.exitCode !== null) throw new Error("the server did not start");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return { server, url: `http://${JSON.parse(fs.readFileSync(ready, "utf8")).http}` };
}

function serveFile(route) {
  const name = new URL(route.request().url()).pathname.slice(1) || "index.html";
  const types = {
    html: "text/html", js: "text/javascript", css: "text/css", svg: "image/svg+xml",
  };
  return route.fulfill({
    body: fs.readFileSync(path.join(process.env.WEB_DIST, name)),
    contentType: types[name.split(".").at(-1)],
  });
}

async function take(url) {
  const require = createRequire(import.meta.url);
  const { chromium } = require("playwright-core");
  const browser = await chromium.launch({
    executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  if (process.env.WEB_DIST) await page.route(/\/(assets\/[^?]*)?$/, serveFile);
  await page.goto(`${url}/#/e/default/digits-spot`);
  await page.locator(".best-value").waitFor();
  await page.locator(".u-over").first().waitFor();
  await page.waitForFunction(() => document.querySelector("[aria-busy=true]") === null);
  await page.screenshot({ path: path.join(root, PICTURE) });
  await browser.close();
}

async function make(binary) {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), "shirabe-picture-"));
  const ran = spawnSync(binary, ["run", "-q", "-f", "deploy/examples/digits-spot.yaml", "--nodes",
    "deploy/examples/nodes.yaml"],
  { cwd: root, env: { ...process.env, SHIRABE_HOME: home }, stdio: "inherit" });
  if (ran.status !== 0) throw new Error("the experiment could not be run");
  const { server, url } = await served(binary, home);
  try {
    await take(url);
  } finally {
    server.kill("SIGTERM");
    await new Promise((resolve) => server.once("exit", resolve));
    fs.rmSync(home, { recursive: true, force: true });
  }
  fs.writeFileSync(path.join(root, RECORD), record());
}

try {
  if (process.argv[2] === "--check") check();
  else await make(path.resolve(process.argv[2] ?? path.join(root, "build/release/bin/shirabe")));
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
