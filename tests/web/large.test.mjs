// 100,000 attempts and trials: drawn by the pixel and in turns, said so, and each still found.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { asked, newHome, on, serve } from "./harness.mjs";

const MANY = 100_000;
const BEGIN = Date.UTC(2026, 0, 1) / 1000;
let server;
before(async () => {
  server = await serve({ home: newHome() });
  await server.call("POST", "/api/v1/experiments", asked("long"));
});

// As the server would send it (docs/design/formats.md).
function replyOf(rows, fields) {
  const columns = fields.map(([name, , dictionary], i) => ({
    name, kind: dictionary ? "category" : "number", offset: i * rows, dictionary,
  }));
  const text = Buffer.from(JSON.stringify({ rows, total: rows, revision: 1, columns }));
  const length = Math.ceil(text.length / 8) * 8;
  const reply = Buffer.alloc(16 + length + 8 * rows * fields.length, 0x20);
  reply.write("SHIRABE\u0001", 0, "latin1");
  reply.writeUInt32LE(length, 8);
  text.copy(reply, 16);
  fields.forEach(([, of], c) => {
    for (let i = 0; i < rows; ++i) reply.writeDoubleLE(of(i), 16 + length + 8 * (c * rows + i));
  });
  return reply;
}

// Every seventh was preempted.
const ATTEMPTS = replyOf(MANY, [
  ["trial", (i) => i + 1], ["attempt", () => 1], ["created", (i) => BEGIN + 2 * i],
  ["start", (i) => BEGIN + 2 * i + 1], ["end", (i) => BEGIN + 2 * i + 20],
  ["state", () => 0, ["closed"]],
  ["cause", (i) => (i % 7 === 0 ? 1 : 0), ["completed", "preempted-node"]],
  ["node", (i) => i % 3, ["n1", "n2", "n3"]],
]);
const RUNNING = replyOf(MANY, [
  ["trial", (i) => i + 1], ["attempt", () => 1], ["created", (i) => BEGIN + 2 * i],
  ["start", (i) => BEGIN + 2 * i + 1], ["end", (i) => (i < MANY - 1 ? BEGIN + 2 * i + 20 : NaN)],
  ["state", (i) => (i < MANY - 1 ? 0 : 1), ["closed", "running"]],
  ["cause", () => 0, ["completed"]], ["node", (i) => i % 3, ["n1", "n2", "n3"]],
]);
const TRIALS = replyOf(MANY, [
  ["trial", (i) => i + 1], ["state", () => 0, ["Succeeded"]],
  ["objective", (i) => Math.sin(i) + i / MANY],
  ["param.lr", (i) => 0.001 * 1000 ** ((i % 1009) / 1009)],
  ["param.opt", (i) => i % 2, ["adam", 'sgd, "slow"']],
]);

// Each turn of web/src/turns.ts begins with a message of its own.
function countTurns() {
  const Own = window.MessageChannel;
  window.turns = 0;
  window.MessageChannel = class extends Own {
    constructor() {
      super();
      ++window.turns;
    }
  };
}

// How long a turn takes is measured in bench/web; here, that the work is cut into many.
async function wasDoneInTurns(page) {
  const turns = await page.evaluate(() => window.turns);
  assert.ok(turns >= 4, `${turns} turns`);
}

const drawn = (page) => page.locator('.lanes canvas[data-busy="false"]').waitFor();

async function withMany(act) {
  await on(server, "#/e/default/long", async (page) => {
    await page.route(/\/experiments\/long\/timeline\?/, (route) =>
      route.fulfill({ body: ATTEMPTS, contentType: "application/vnd.shirabe.columns" }));
    await page.getByRole("heading", { name: "long", exact: true }).waitFor();
    await page.evaluate(countTurns);
    await page.evaluate(() => void (location.hash = "#/e/default/long/timeline"));
    await drawn(page);
    await act(page);
  });
}

// Pixels of the picture by what they look like: the fewest that are seen at any of `looks` frames.
const leastInkOf = (page, looks = 40) => page.locator(".lanes canvas").evaluate(
  async (canvas, frames) => {
    let least = Infinity;
    for (; frames > 0; --frames) {
      const { data } = canvas.getContext("2d").getImageData(120, 30, canvas.width - 140,
        canvas.height - 40);
      let ink = 0;
      for (let i = 3; i < data.length; i += 4) if (data[i] > 60) ++ink;
      least = Math.min(least, ink);
      await new Promise((done) => requestAnimationFrame(done));
    }
    return least;
  }, looks);
const inkOf = (page) => leastInkOf(page, 1);

test("all of them are drawn at once and in turns, and it is said how", () =>
  withMany(async (page) => {
    await page.getByText(/^100,000 attempts in [\d,]+ × \d+ pixels, \d+ lanes to a row/).waitFor();
    await page.getByText("100,000 attempts in 100,000 lanes, 14,286 preemptions").first().waitFor();
    assert.ok(await inkOf(page) > 500);
    await wasDoneInTurns(page);
  }));

test("the pointer says what is in a pixel; zoomed in, it finds one attempt", () =>
  withMany(async (page) => {
    const box = await page.locator(".lanes canvas").boundingBox();
    const [x, y] = [box.x + 110 + (box.width - 122) / 2, box.y + 26 + (box.height - 30) / 2];
    // The lanes run from the upper left to the lower right.
    for (let i = -3; i <= 3 && (await page.locator(".tip").count()) === 0; ++i) {
      await page.mouse.move(x + i, y);
    }
    const tip = await page.locator(".tip").innerText();
    assert.match(tip, /^\d+ attempts in one pixel\ntrials \d+ to \d+\n.*\d+ completed/);
    const at = (BEGIN + MANY) * 1000;
    await page.evaluate(([from, to]) => {
      location.hash = `#/e/default/long/timeline?from=${from}&to=${to}`;
    }, [at, at + 60_000]);
    await page.getByText(/^\d\d attempts in .* each lane \d+ pixels high/).waitFor();
    await drawn(page);
    const first = page.locator(".tip", { hasText: /^trial \d+, attempt 1: / });
    for (let down = 40; down < 300 && (await first.count()) === 0; down += 12) {
      await page.mouse.move(x, box.y + down);
    }
    const trial = /^trial (\d+)/.exec(await first.innerText())[1];
    assert.ok(Math.abs(Number(trial) - MANY / 2) < 60, trial);
    await page.mouse.down();
    await page.mouse.up();
    await page.waitForURL(new RegExp(`#/t/default/long/${trial}/attempts`));
  }, { expects: /404/ }));

test("a click on many shows their lanes one by one", () =>
  withMany(async (page) => {
    const box = await page.locator(".lanes canvas").boundingBox();
    for (let i = -3; i <= 3 && (await page.locator(".tip").count()) === 0; ++i) {
      await page.mouse.move(box.x + 110 + (box.width - 122) / 2 + i, box.y + box.height / 2 + 11);
    }
    const [, low, high] = /trials (\d+) to (\d+)/.exec(await page.locator(".tip").innerText());
    await page.mouse.down();
    await page.mouse.up();
    await page.waitForURL(/rows=each/);
    const lane = Number(/lane=(\d+)/.exec(page.url())[1]);
    assert.ok(lane + 1 >= low - 200 && lane + 1 <= high, `lane ${lane} of ${low} to ${high}`);
    await drawn(page);
    const top = await page.locator(".lanes").evaluate((one) => one.scrollTop);
    assert.equal(Math.round(top / 22), lane - 8);
  }));

test("lanes of more attempts than can be told apart are drawn by the pixel, and it is said", () =>
  withMany(async (page) => {
    await page.getByLabel("One lane a").selectOption("node");
    await page.getByText(/^Lanes of many attempts are drawn by the pixel/).waitFor();
    await drawn(page);
    assert.ok(await inkOf(page) > 10_000);
    assert.equal(await page.getByLabel("Show lanes").inputValue(), "each");
  }));

// As on a machine that is slow: seconds pass, a hundred times as fast, while lanes are made and
// drawn. An attempt runs, so they grow with each of them.
test("lanes that take longer than a second to make and to draw are shown all the same", () =>
  on(server, "#/capacity", async (page) => {
    await page.context().addInitScript(() => {
      const own = window.setInterval;
      window.setInterval = (act, ms, ...more) => own(act, ms / 100, ...more);
    });
    await page.route(/\/experiments\/long\/timeline\?/, (route) =>
      route.fulfill({ body: RUNNING, contentType: "application/vnd.shirabe.columns" }));
    await page.reload();
    await page.evaluate(() => void (location.hash = "#/e/default/long/timeline?lanes=node"));
    for (const rows of ["each", "all"]) {
      await page.getByLabel("Show lanes").selectOption(rows);
      await drawn(page);
      let ink = 0;
      for (let left = 100; left > 0 && ink <= 10_000; left--) {
        ink = await inkOf(page);
        if (ink <= 10_000) await page.waitForTimeout(100);
      }
      assert.ok(ink > 10_000);
      // They are drawn again and again, and stand there meanwhile.
      assert.ok(await leastInkOf(page) > 10_000);
    }
  }));

test("the analysis of 100,000 trials is drawn in turns, by the pixel, and it is said", () =>
  on(server, "#/capacity", async (page) => {
    await page.route(/\/experiments\/long\/columns\?/, (route) =>
      route.fulfill({ body: TRIALS, contentType: "application/vnd.shirabe.columns" }));
    await page.getByRole("link", { name: "Capacity" }).waitFor();
    await page.evaluate(countTurns);
    await page.evaluate(() => void (location.hash = "#/e/default/long/analysis"));
    await page.getByText(/^100,000 trials in \d+ × \d+ pixels: /).waitFor();
    await page.waitForFunction(() => {
      const all = [...document.querySelectorAll(".slice canvas")];
      return all.length === 2 && all.every((canvas) => {
        // Within the axes, where there are dots only.
        const { data } = canvas.getContext("2d").getImageData(60, 20, 200, 130);
        let ink = 0;
        for (let i = 3; i < data.length; i += 4) if (data[i] > 100) ++ink;
        return ink > 3000;
      });
    });
    await wasDoneInTurns(page);
  }));

test("the number of the last of 100,000 trials is not cut off", () =>
  on(server, "#/capacity", async (page) => {
    await page.route(/\/experiments\/long\/columns\?/, (route) =>
      route.fulfill({ body: TRIALS, contentType: "application/vnd.shirabe.columns" }));
    await page.getByRole("link", { name: "Capacity" }).waitFor();
    for (const address of ["#/e/default/long", "#/compare?e=default/long"]) {
      await page.evaluate((hash) => void (location.hash = hash), address);
      await page.locator(".chart canvas").first().waitFor();
      await page.waitForTimeout(1000);
      const cut = await page.locator(".chart canvas").first().evaluate((canvas) => {
        const { data } = canvas.getContext("2d")
          .getImageData(canvas.width - 2, 0, 2, canvas.height);
        return data.some((value) => value > 0);
      });
      assert.equal(cut, false, address);
    }
  }));
