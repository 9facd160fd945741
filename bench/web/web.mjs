// The dashboard beside optuna-dashboard, both showing the same trials in the same chromium.
//   web.mjs BINARY OPTUNA_DASHBOARD FOLDER [TRIALS…]
// FOLDER/TRIALS/ has study.db, and home/ with the same study imported (run.sh makes them). Prints
// the tables of bench/RESULTS.md. What a page does not show within BOUND_S is said so. WEB_PARTS
// (pages,frames,answers,watchers) chooses parts, WEB_ROUNDS how often each page is opened. What was
// measured of optuna-dashboard stays in FOLDER/TRIALS/theirs.json, since the largest study takes it
// a quarter of an hour; without that file it is measured again.
import { spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { BOUND_S, dragFrames, launch, open, opened, scrollFrames } from "./measure.mjs";
import { watched } from "./watchers.mjs";


const [binary, peer, folder, ...sizes] = process.argv.slice(2);
const parts = (process.env.WEB_PARTS ?? "pages,frames,answers,watchers").split(",");
const rounds = Number(process.env.WEB_ROUNDS ?? 3);
const counts = sizes.length > 0 ? sizes.map(Number) : [100, 10_000, 100_000];

// What says that a page shows what one came for. They run in the page.
const OURS = {
  list: ["", () => document.querySelector(".grid-body .grid-row a.name") !== null],
  experiment: ["#/e/default/large", () =>
    document.querySelector(".best-value") !== null && document.querySelector(".u-over") !== null],
  trials: ["#/e/default/large/trials", () =>
    document.querySelectorAll(".grid-body .grid-row").length > 10],
  parallel: ["#/e/default/large/analysis", () =>
    Number(document.querySelector("canvas[data-took]")?.dataset.took) > 0],
};
const THEIRS = {
  list: ["dashboard", () => document.querySelector("a[href*='studies/1']") !== null],
  experiment: ["dashboard/studies/1", () =>
    document.querySelector(".js-plotly-plot .main-svg .points, .js-plotly-plot canvas") !== null],
  trials: ["dashboard/studies/1/trials", () => /Trial 1\b/.test(document.body.innerText)],
  parallel: ["dashboard/studies/1/smartSelection", () =>
    document.querySelector(".parcoords") !== null],
};

async function freePort() {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

// A server that answers at `probe`, and a function that ends it.
async function serve(command, words, port, probe, env = {}) {
  const child = spawn(command, words, { env: { ...process.env, ...env }, stdio: "ignore" });
  const url = `http://127.0.0.1:${port}/`;
  for (let i = 0; ; ++i) {
    const there = await fetch(url + probe).then((reply) => reply.ok, () => false);
    if (there) break;
    if (i > 600 || child.exitCode !== null) throw new Error(`${command} did not start`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const stop = () => new Promise((resolve) => {
    child.once("exit", resolve);
    child.kill("SIGTERM");
    setTimeout(() => child.kill("SIGKILL"), 5000).unref();
  });
  return { url, pid: child.pid, stop };
}

async function both(count) {
  const at = path.join(folder, String(count));
  const [ours, theirs] = [await freePort(), await freePort()];
  return [
    await serve(binary, ["serve", "--insecure", "--grpc", "127.0.0.1:0", "--http",
      `127.0.0.1:${ours}`], ours, "livez", { SHIRABE_HOME: path.join(at, "home") }),
    await serve(peer, ["--quiet", "--port", String(theirs),
      `sqlite:///${path.join(at, "study.db")}`], theirs, "dashboard"),
  ];
}

// What `measure` gives, the first time; then what it gave.
async function kept(count, name, measure) {
  const file = path.join(folder, String(count), "theirs.json");
  const all = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, "utf8")) : {};
  if (!(name in all)) {
    all[name] = await measure();
    fs.writeFileSync(file, JSON.stringify(all, (_, value) =>
      typeof value === "number" && Number.isNaN(value) ? "none" : value));
  }
  const none = (_, value) => (value === "none" ? NaN : value);
  return JSON.parse(fs.readFileSync(file, "utf8"), none)[name];
}

// ---- printing ----------------------------------------------------------------------------------

function ms(value) {
  if (Number.isNaN(value)) return `none in ${BOUND_S} s`;
  return value >= 10_000 ? `${(value / 1000).toFixed(1)} s` : `${Math.round(value)} ms`;
}

function size(bytes) {
  if (Number.isNaN(bytes)) return "–";
  return bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e3).toFixed(0)} kB`;
}

function ratio(ours, theirs, unit = ms, bound = BOUND_S * 1000) {
  if (Number.isNaN(theirs) && unit === ms) return `> ${(bound / ours).toFixed(0)}×`;
  const by = theirs / ours;
  return Number.isNaN(by) ? "–" : `${by >= 10 ? by.toFixed(0) : by.toFixed(1)}×`;
}

const row = (...cells) => console.log(`| ${cells.join(" | ")} |`);

// ---- parts -------------------------------------------------------------------------------------

async function pages(browser, count, ours, theirs) {
  for (const name of Object.keys(OURS)) {
    const [place, shows] = OURS[name];
    const [their, theirShows] = THEIRS[name];
    const a = await opened(browser, ours.url + place, shows, rounds);
    const b = await kept(count, name,
      () => opened(browser, theirs.url + their, theirShows, rounds));
    row(count.toLocaleString("en"), name, ms(a.paint), `**${ms(a.shown)}**`, ms(a.interactive),
      size(a.bytes), ms(b.paint), ms(b.shown), ms(b.interactive), size(b.bytes),
      ratio(a.shown, b.shown), ratio(a.bytes, b.bytes, size));
  }
}

const even = (one) => (one === null ? `none in ${BOUND_S} s`
  : `${one.median.toFixed(0)}, ${one.p95.toFixed(0)}, ${one.max.toFixed(0)} ms` +
    (one.work === undefined ? "" : `; ${one.work.toFixed(1)} ms of work`));

async function scrolled(browser, server, [place, shows]) {
  const { page, context, figures } = await open(browser, server.url + place, shows);
  const found = Number.isNaN(figures.shown) ? null : await scrollFrames(page, 600);
  await context.close();
  return found;
}

// Along the first axis of the parallel coordinates, from near its top to its middle.
async function brushed(browser, server, [place, shows], axis) {
  const { page, context, figures } = await open(browser, server.url + place, shows);
  let found = null;
  if (!Number.isNaN(figures.shown)) {
    const box = await page.locator(axis).first().boundingBox();
    const x = box.x + box.width / 2;
    found = await dragFrames(page, { x, y: box.y + box.height * 0.2 },
      { x, y: box.y + box.height * 0.6 });
    found.drawn = await page.evaluate(() =>
      Number(document.querySelector("canvas[data-took]")?.dataset.took ?? NaN));
  }
  await context.close();
  return found;
}

async function frames(browser, count, ours, theirs) {
  row(count.toLocaleString("en"), "scroll, 600 pixels a frame",
    even(await scrolled(browser, ours, OURS.trials)),
    even(await kept(count, "scroll", () => scrolled(browser, theirs, THEIRS.trials))));
  const brush = await brushed(browser, ours, OURS.parallel, ".brush-area");
  row(count.toLocaleString("en"), "parallel coordinates, in a worker",
    brush ? ms(brush.drawn) : "–", "");
  row(count.toLocaleString("en"), "brush along an axis", even(brush),
    even(await kept(count, "brush",
      () => brushed(browser, theirs, THEIRS.parallel, ".parcoords .axis-brush .background"))));
}

// Two requests one after the other: what is computed, and what is kept.
async function asked(url) {
  const times = [];
  let bytes = 0;
  for (let i = 0; i < 2; ++i) {
    const begin = performance.now();
    const reply = await fetch(url, { signal: AbortSignal.timeout(BOUND_S * 1000) })
      .then((one) => one.arrayBuffer(), () => null);
    if (reply === null) return { first: NaN, again: NaN, bytes: NaN };
    times.push(performance.now() - begin);
    bytes = Math.max(bytes, reply.byteLength);
  }
  return { first: times[0], again: times[1], bytes };
}

async function answers(count, ours, theirs) {
  const api = `${ours.url}api/v1/namespaces/default/experiments/large`;
  const pairs = [
    ["all trials", `${api}/columns`, `${theirs.url}api/studies/1?after=0`],
    ["importance", `${api}/importance`, `${theirs.url}api/studies/1/param_importances`],
    ["… PED-ANOVA", `${api}/importance?method=ped-anova`, ""],
  ];
  for (const [what, our, their] of pairs) {
    const a = await asked(our);
    const b = their === "" ? null : await kept(count, `answer: ${what}`, () => asked(their));
    row(count.toLocaleString("en"), what, `**${ms(a.first)}**, ${ms(a.again)}`, size(a.bytes),
      b ? `${ms(b.first)}, ${ms(b.again)}` : "", b ? size(b.bytes) : "",
      b ? ratio(a.first, b.first) : "");
  }
}

async function section(name, title, head, run) {
  if (!parts.includes(name)) return;
  console.log(`\n${title}\n`);
  row(...head);
  row(...head.map(() => "---"));
  for (const count of counts) {
    const [ours, theirs] = await both(count);
    try {
      await run(count, ours, theirs);
    } finally {
      await Promise.all([ours.stop(), theirs.stop()]);
    }
  }
}

if (!fs.existsSync(folder)) throw new Error(`there is no folder ${folder}`);
const browser = await launch();
try {
  await section("pages", `Opening a page, empty cache, median of ${rounds}`,
    ["trials", "page", "first paint", "shown", "answers", "bytes", "theirs: first paint", "shown",
      "answers", "bytes", "shown", "bytes"],
    (...all) => pages(browser, ...all));
  await section("frames", "Frames: median, p95, longest",
    ["trials", "what", "Shirabe", "optuna-dashboard"], (...all) => frames(browser, ...all));
  await section("answers", "Answers of the server: the first, the next",
    ["trials", "what", "Shirabe", "bytes", "optuna-dashboard", "bytes", "ratio"], answers);

} finally {
  await browser.close();
}
if (parts.includes("watchers")) await watched({ binary, peer, folder, serve, freePort });
