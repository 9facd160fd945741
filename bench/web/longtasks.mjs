// Where the page of a large experiment holds its reader up: the long tasks (over 50 ms, by the
// browser's own account) of the timeline and of the analysis, of a server and of a report; and the frames (median, p95,
// longest) while the table scrolls and an axis is brushed.
//   longtasks.mjs BINARY HOME EXPERIMENT [REPORT.html]
// HOME is that of a store with the experiment (run.sh makes build/bench-web/TRIALS/home). WEB_DIST:
// other files than those built into BINARY, of a server.
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { spawn } from "node:child_process";
import { pathToFileURL } from "node:url";
import { dragFrames, launch, scrollFrames } from "./measure.mjs";

const [binary, home, experiment, report] = process.argv.slice(2);

function observe() {
  window.longTasks = [];
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) window.longTasks.push([one.startTime, one.duration]);
  }).observe({ type: "longtask", buffered: true });
}

async function freePort() {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function serve() {
  const port = await freePort();
  const child = spawn(binary, ["serve", "--insecure", "--grpc", "127.0.0.1:0", "--http",
    `127.0.0.1:${port}`], { env: { ...process.env, SHIRABE_HOME: home }, stdio: "ignore" });
  const url = `http://127.0.0.1:${port}/`;
  while (!(await fetch(`${url}livez`).then((reply) => reply.ok, () => false))) {
    if (child.exitCode !== null) throw new Error("the server ended");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return { url, child };
}

async function withOtherFiles(context, folder) {
  await context.route(/^http:\/\/127\.0\.0\.1:\d+\/(assets\/[^?]*)?$/, async (route) => {
    const name = new URL(route.request().url()).pathname.slice(1) || "index.html";
    const types = {
      html: "text/html", js: "text/javascript", css: "text/css", svg: "image/svg+xml",
    };
    await route.fulfill({
      body: fs.readFileSync(path.join(folder, name)),
      contentType: types[name.split(".").at(-1)],
    });
  });
}

// What `act` takes until `shows` holds and half a second has gone by without a long task.
async function measured(page, what, act, shows) {
  const begin = await page.evaluate(() => {
    window.longTasks = window.longTasks ?? []; // there is none before the first page
    window.longTasks.length = 0;
    return Date.now();
  });
  await act();
  await page.waitForFunction(shows, undefined, { polling: 20, timeout: 240_000 });
  const shown = await page.evaluate(() => Date.now());
  const tasks = await page.evaluate(() => new Promise((resolve) => {
    const look = () => {
      const end = Math.max(0, ...window.longTasks.map(([at, took]) => at + took));
      if (performance.now() - end > 700) resolve(window.longTasks);
      else setTimeout(look, 100);
    };
    setTimeout(look, 700);
  }));
  const took = tasks.map(([, ms]) => Math.round(ms));
  const sum = took.reduce((a, b) => a + b, 0);
  console.log(`| ${what} | ${Math.round(shown - begin)} ms | ${took.length} | ` +
    `${Math.max(0, ...took)} ms | ${sum} ms |`);
}

const always = () => true;
const lanesDrawn = () => {
  const canvas = document.querySelector(".lanes canvas");
  return canvas !== null && canvas.dataset.busy !== "true" && canvas.width > 300;
};
const parallelDrawn = () =>
  Number(document.querySelector("canvas[data-took]")?.dataset.took) > 0;

async function timeline(page, base) {
  await measured(page, "timeline: open", () => page.goto(`${base}/timeline`), lanesDrawn);
  const box = await page.locator(".lanes canvas").boundingBox();
  await measured(page, "timeline: hover along a lane, 40 places", async () => {
    for (let i = 0; i < 40; ++i) {
      await page.mouse.move(box.x + 120 + (i * (box.width - 140)) / 40, box.y + 60 + i);
    }
  }, always);
  await measured(page, "timeline: scroll through all lanes, 60 frames", () =>
    page.evaluate(() => new Promise((resolve) => {
      const lanes = document.querySelector(".lanes");
      let i = 0;
      const tick = () => {
        lanes.scrollTop = ((lanes.scrollHeight - lanes.clientHeight) * ++i) / 60;
        if (i < 60) requestAnimationFrame(tick);
        else resolve();
      };
      tick();
    })), always);
  await measured(page, "timeline: 10 zooms", async () => {
    await page.evaluate(() => document.querySelector(".lanes").scrollTo(0, 0));
    await page.mouse.move(box.x + box.width / 2, box.y + 100);
    await page.keyboard.down("Control");
    for (let i = 0; i < 10; ++i) await page.mouse.wheel(0, -100);
    await page.keyboard.up("Control");
  }, always);
  await measured(page, "timeline: one lane a node",
    () => page.goto(`${base}/timeline?lanes=node`), lanesDrawn);
  await measured(page, "timeline, by node: hover, 40 places", async () => {
    for (let i = 0; i < 40; ++i) {
      await page.mouse.move(box.x + 120 + (i * (box.width - 140)) / 40, box.y + 35);
    }
  }, always);
}

async function analysis(page, base, of) {
  await measured(page, `${of}: open`, () => page.goto(base), () =>
    document.querySelector(".best-value") !== null);
  await measured(page, `${of}: analysis`, () =>
    page.evaluate((to) => void (location.hash = to), `${new URL(base).hash}/analysis`),
  parallelDrawn);
}

const words = ({ median, p95, max }) =>
  [median, p95, max].map((one) => `${one.toFixed(0)} ms`).join(", ");

async function frames(page, base) {
  await page.goto(`${base}/trials`);
  await page.waitForFunction(() => document.querySelectorAll(".grid-body .grid-row").length > 10);
  await page.waitForTimeout(1500);
  console.log(`\ntable, 600 pixels a frame: frames ${words(await scrollFrames(page, 600))}`);
  await page.goto(`${base}/analysis`);
  await page.waitForFunction(parallelDrawn, undefined, { timeout: 60_000 });
  await page.waitForTimeout(2500);
  const took = await page.evaluate(() =>
    document.querySelector("canvas[data-took]").dataset.took);
  const box = await page.locator(".brush-area").first().boundingBox();
  const x = box.x + box.width / 2;
  const brush = await dragFrames(page, { x, y: box.y + box.height * 0.2 },
    { x, y: box.y + box.height * 0.6 });
  console.log(`parallel coordinates: ${took} ms; brush: frames ${words(brush)}`);
}

const browser = await launch();
const server = await serve();
try {
  console.log("| what | shown | long tasks | longest | in all |\n| --- | --- | --- | --- | --- |");
  const parts = (process.env.WEB_PARTS ?? "timeline,analysis,report,frames").split(",");
  const page = async () => {
    const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
    if (process.env.WEB_DIST) await withOtherFiles(context, process.env.WEB_DIST);
    const made = await context.newPage();
    made.on("pageerror", (error) => console.log(`error: ${error.stack}`));
    await made.addInitScript(observe);
    return made;
  };
  const base = `${server.url}#/e/default/${experiment}`;
  if (parts.includes("timeline")) await timeline(await page(), base);
  if (parts.includes("analysis")) await analysis(await page(), base, "server");
  if (report && parts.includes("report")) {
    const file = `${pathToFileURL(report)}#/e/default/${experiment}`;
    await analysis(await page(), file, "report");
  }
  if (parts.includes("frames")) await frames(await page(), base);
} finally {
  await browser.close();
  server.child.kill("SIGTERM");
}
