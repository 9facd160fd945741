// What a reader of a page waits for, measured in chromium: when something is painted, when what
// they came for is there, when the page answers again, how many bytes came, and how it scrolls.
import { createRequire } from "node:module";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");

export const BOUND_S = 120; // what is not there by then is said to be not there

export async function launch() {
  return chromium.launch({
    executablePath: "/usr/bin/chromium",
    // Without a GPU WebGL is drawn by the processor; optuna-dashboard needs it.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--enable-unsafe-swiftshader"],
  });
}

// Runs in the page before anything of it: its long tasks are kept from the start.
function observe() {
  window.longTasks = [];
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) window.longTasks.push([one.startTime, one.duration]);
  }).observe({ type: "longtask", buffered: true });
}

// Bytes that come over the wire, as they are encoded there.
async function countBytes(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  const found = { bytes: 0, largest: 0, requests: 0 };
  session.on("Network.loadingFinished", ({ encodedDataLength }) => {
    found.bytes += encodedDataLength;
    found.largest = Math.max(found.largest, encodedDataLength);
    ++found.requests;
  });
  return found;
}

// Waits until nothing has held the page up for half a second: the end of the last long task.
async function untilQuiet(page, quiet = 500) {
  return page.evaluate((quiet) => new Promise((resolve) => {
    const look = () => {
      const end = Math.max(0, ...window.longTasks.map(([at, took]) => at + took));
      if (performance.now() - end > quiet) resolve(end);
      else setTimeout(look, 100);
    };
    look();
  }), quiet);
}

// Opens an address with an empty cache; `shows` runs in the page and says whether what one came for
// is there. Times are of the page's own clock, which begins with the navigation.
export async function open(browser, url, shows, bound = BOUND_S) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(bound * 1000);
  await page.addInitScript(observe);
  const wire = await countBytes(page);
  await page.goto(url, { waitUntil: "commit" });
  const shown = await page.waitForFunction(shows, undefined, { polling: 10 })
    .then(() => page.evaluate(() => performance.now()), () => NaN);
  const figures = { paint: await firstPaint(page), shown, interactive: NaN };
  if (!Number.isNaN(shown)) figures.interactive = Math.max(shown, await untilQuiet(page));
  return { page, context, figures: { ...figures, ...wire } };
}

function firstPaint(page) {
  return page.evaluate(() =>
    performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN);
}

// The median of each figure of several openings.
export async function opened(browser, url, shows, rounds) {
  const all = [];
  for (let i = 0; i < rounds; ++i) {
    const { context, figures } = await open(browser, url, shows);
    await context.close();
    all.push(figures);
    if (Number.isNaN(figures.shown)) break; // it would take the whole bound again
  }
  return Object.fromEntries(Object.keys(all[0]).map(
    (name) => [name, median(all.map((one) => one[name]))]));
}

// Processor time of the page's main thread, in ms: what other programs of the machine take does not
// count.
async function threadTime(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return 1000 * metrics.find((one) => one.name === "TaskDuration").value;
  };
}

// Scrolls what scrolls the most in the page by so many pixels a frame, and says how long the frames
// took, and how much work one was.
export async function scrollFrames(page, step, ms = 3000) {
  const time = await threadTime(page);
  const before = await time();
  const found = spread(await page.evaluate(({ step, ms }) => new Promise((resolve) => {
    const able = [...document.querySelectorAll("body *")].filter((one) =>
      /auto|scroll/.test(getComputedStyle(one).overflowY));
    const most = able.sort((a, b) => b.scrollHeight - a.scrollHeight)[0];
    const end = most.scrollHeight - most.clientHeight; // reading it later would be work of its own
    const took = [];
    let [last, top] = [0, 0];
    const begin = performance.now();
    const tick = (now) => {
      if (last > 0) took.push(now - last);
      last = now;
      top = top + step > end ? 0 : top + step;
      most.scrollTop = top;
      if (now - begin < ms) requestAnimationFrame(tick);
      else resolve(took.slice(2));
    };
    requestAnimationFrame(tick);
  }), { step, ms }));
  return { ...found, work: (await time() - before) / found.count };
}

// The frames of a page while the pointer is dragged from one place to another.
export async function dragFrames(page, from, to, steps = 60) {
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.evaluate(() => {
    window.frameTimes = [];
    let last = 0;
    const tick = (now) => {
      if (!window.frameTimes) return; // that was all
      if (last > 0) window.frameTimes.push(now - last);
      last = now;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  for (let i = 1; i <= steps; ++i) {
    const share = i / steps;
    await page.mouse.move(from.x + (to.x - from.x) * share, from.y + (to.y - from.y) * share);
  }
  const took = await page.evaluate(() => {
    const all = window.frameTimes;
    window.frameTimes = null;
    return all;
  });
  await page.mouse.up();
  return spread(took);
}

export function spread(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  return { median: at(0.5), p95: at(0.95), max: sorted.at(-1), count: sorted.length };
}

export function median(values) {
  const sorted = values.filter((one) => !Number.isNaN(one)).sort((a, b) => a - b);
  return sorted.length === 0 ? NaN : sorted[Math.floor(sorted.length / 2)];
}
