// The pictures of the analysis: parameters that a trial need not have, brushes, names that are long
// or hold quotes, one selection.
import assert from "node:assert/strict";
import fs from "node:fs";
import { before, test } from "node:test";
import { spawnSync } from "node:child_process";
import { PATIENCE, asked, binary, newHome, on, serve, shirabe } from "./harness.mjs";

let server;
const LONG = "a_parameter_whose_name_has_sixty_letters_and_does_not_break".slice(0, 59);
const WORDS = ["=1+1", "a,b", 'say "hi"', "<b>x</b>", 'sgd, "slow"', '5" disk'];

// Asked for and told; the last `open` of them are left running.
async function make(name, more, { trials, open = 0, value }) {
  await server.call("POST", "/api/v1/experiments", asked(name, { trials: 100, ...more }));
  const one = `/api/v1/namespaces/default/experiments/${name}`;
  for (let i = 0; i < trials; ++i) {
    const { trial } = await server.call("POST", `${one}:ask`, { caller: `w${i}` });
    if (i >= trials - open) continue;
    await server.call("POST", `${one}/trials/${trial.status.shirabe.number}:tell`, {
      metrics: { loss: value(i, trial) }, step: 1, end: "completed",
    });
  }
}

const number = (name, min, max) =>
  ({ name, parameterType: "double", feasibleSpace: { min: `${min}`, max: `${max}` } });
const category = (name, ...list) =>
  ({ name, parameterType: "categorical", feasibleSpace: { list } });

before(async () => {
  server = await serve({ home: newHome() });
  // Each kind of model has a parameter of its own.
  await make("models", {
    parameters: [category("model", "svm", "forest"), number("c", 1, 2), number("depth", 3, 4)],
    shirabe: {
      space: {
        conditions: [
          { parameter: "c", when: { model: { in: ["svm"] } } },
          { parameter: "depth", when: { model: { in: ["forest"] } } },
        ],
      },
    },
  }, { trials: 24, open: 2, value: Math.cos });
  await make("long", {
    parameters: [1, 2, 3].map((i) => number(LONG + i, 0, 200)).concat(category(`${LONG}4`,
      "the first of the long categories", "the second of the long categories", "third", "4")),
  }, { trials: 20, value: (i) => 1000 + Math.sin(i) / 1000 });
  await make("empty", { parameters: [number("lr", 0, 1), category("aug", "flip", "crop", "")] }, {
    trials: 24,
    value: (i, trial) => i / 1000 +
      trial.spec.parameterAssignments.find((one) => one.name === "aug").value.length,
  });
  await make("odd", {
    parameters: [number('p, "q" | x<1', 0, 1), category("opt", ...WORDS),
      number("narrow", 0.98221, 0.98224)],
  }, { trials: 40, value: Math.sin });
});

test("of many parameters those that matter most are drawn, and it is said", async () => {
  await make("many", {
    parameters: Array.from({ length: 26 }, (_, i) => number(`p${i}`, 0, 1)),
  }, {
    trials: 30,
    value: (_, trial) => 10 * trial.spec.parameterAssignments.find((one) => one.name === "p25")
      .value,
  });
  await on(server, "#/e/default/many/analysis", async (page) => {
    await page.getByText("24 of the 26 parameters that vary: those that matter most, the most " +
      "important first.").waitFor();
    const { parameters } = await server.call(
      "GET", "/api/v1/namespaces/default/experiments/many/importance?method=gp");
    assert.equal(parameters[0].parameter, "p25");
    const names = await page.locator(".slice figcaption").allInnerTexts();
    assert.equal(names.length, 24);
    assert.equal(names[0].trim().split(/\s/)[0], "p25");
    const [command] = await commandOf(page, "loss over each parameter");
    assert.match(command, /^shirabe plot many slice -p p25 -p /);
  });
});

// What the picture says at a place of it, which may move while what stands above it is loaded.
async function tipOf(contour, x, y) {
  const tip = contour.locator(".tip");
  const until = Date.now() + PATIENCE;
  do {
    await contour.locator("canvas").hover({ position: { x, y } });
    const text = await tip.innerText({ timeout: 500 }).catch(() => "");
    if (text !== "") return text;
  } while (Date.now() < until);
  return "";
}

test("a category of no letters is shown as one, in quotes", async () => {
  await on(server, "#/e/default/empty/analysis", async (page) => {
    const gain = page.getByRole("table", { name: "What brought the gain" });
    await gain.getByText(/(flip|crop) → ""/).waitFor();
    await page.locator(".overlay text", { hasText: '""' }).waitFor();
    const contour = page.getByRole("region", { name: "Two parameters at once" });
    assert.match(await tipOf(contour, 200, 30), /aug ""\n/);
  });
  await on(server, "#/e/default/empty", async (page) => {
    await page.getByRole("region", { name: /Best trial/ }).getByText('""').waitFor();
  });
});

const drawn = (page) => page.waitForFunction(() =>
  Number(document.querySelector(".parallel canvas")?.dataset.took) > 0);

// How many pixels of a part of the picture have ink; from and to are shares of its size.
const ink = (page, selector, { x = [0, 1], y = [0, 1] }) =>
  page.locator(selector).first().evaluate((canvas, [from, to]) => {
    const at = ([x, y]) => [Math.floor(x * canvas.width), Math.floor(y * canvas.height)];
    const [[left, top], [right, bottom]] = [at(from), at(to)];
    const { data } = canvas.getContext("2d")
      .getImageData(left, top, right - left, bottom - top);
    return data.filter((value, i) => i % 4 === 3 && value > 0).length;
  }, [[x[0], y[0]], [x[1], y[1]]]);

test("a line of a trial without a parameter goes on through a lane beneath its axis", () =>
  on(server, "#/e/default/models/analysis", async (page) => {
    await drawn(page);
    // c, depth, and the objective of those that run; every trial has a model.
    assert.equal(await page.locator(".none-lane").count(), 3);
    assert.equal(await page.locator(".none-lane text").first().innerHTML(), "none");
    assert.ok(await ink(page, ".parallel canvas", { x: [0.4, 0.6], y: [0.93, 1] }) > 100);
    // All of them reach the last axis.
    assert.ok(await ink(page, ".parallel canvas", { x: [0.9, 0.94] }) > 100);
    await page.getByText("none: without the parameter, or without a result").waitFor();
  }));

test("a slice of a parameter that no trial shown has is left out, and it is said", () =>
  on(server, "#/e/default/models/analysis?filter=model%3Dsvm", async (page) => {
    await page.getByText("No trial shown with a result has depth.").waitFor();
    const names = await page.locator(".slice figcaption").allInnerTexts();
    assert.deepEqual(names.map((one) => one.trim().split(/\s/)[0]), ["model", "c"]);
    await page.getByRole("searchbox").fill("");
    await page.locator(".slice").nth(2).waitFor();
    assert.equal(await page.getByText("No trial shown with").count(), 0);
  }));

// Presses an axis at one share of its length, from its top, and lets go at another.
async function brush(page, axis, from, to = from) {
  const area = page.locator(".brush-area").nth(axis);
  await area.scrollIntoViewIfNeeded();
  const box = await area.boundingBox();
  const x = box.x + box.width / 2;
  await page.mouse.move(x, box.y + from * box.height);
  await page.mouse.down();
  await page.mouse.move(x, box.y + to * box.height, { steps: 4 });
  await page.mouse.up();
}

// Of all trials, by the values themselves.
async function trialsOf(name, parameter, keep) {
  const one = `/api/v1/namespaces/default/experiments/${name}/trials`;
  const { items } = await server.call("GET", `${one}?pageSize=100`);
  return items.filter((trial) => keep(trial.spec.parameterAssignments
    .find((one) => one.name === parameter)?.value)).length;
}

const filterOf = (page) => page.getByRole("searchbox").inputValue();
const said = (n, of) => (n === of ? `${of} trials` : `${n} of ${of} trials shown`);

test("a click on a category chooses it, whatever letters it has, here and in the command", () =>
  on(server, "#/e/default/odd/analysis", async (page) => {
    await drawn(page);
    let inFilter = 0;
    for (const [i, word] of WORDS.entries()) {
      await brush(page, 1, 1 - i / (WORDS.length - 1));
      const n = await trialsOf("odd", "opt", (value) => value === word);
      assert.ok(n > 0, word);
      await page.getByText(said(n, 40)).first().waitFor();
      const filter = await filterOf(page);
      if (filter === "") {
        await page.getByRole("button", { name: `opt is ${word}` }).waitFor();
        continue;
      }
      ++inFilter;
      const found = shirabe(server.home, "get", "trials", "odd", "--filter", filter, "-o", "name");
      assert.equal(found.trim().split("\n").length, n, filter);
    }
    assert.equal(inFilter, WORDS.length - 1); // the language has no word for one quote
    // The same again takes it back.
    await brush(page, 1, 0);
    await page.getByText("40 trials", { exact: true }).first().waitFor();
  }));

test("a drag over three categories keeps all three", () =>
  on(server, "#/e/default/odd/analysis", async (page) => {
    await drawn(page);
    await brush(page, 1, 0.38, 0.82);
    const n = await trialsOf("odd", "opt", (value) => WORDS.slice(1, 4).includes(value));
    await page.getByText(said(n, 40)).first().waitFor();
    // Two tabs on, it still holds.
    await page.getByRole("link", { name: "Trials", exact: true }).click();
    await page.getByText(said(n, 40)).first().waitFor();
    await page.getByText(/^The command does not choose by opt is a,b or/).waitFor();
    await page.getByRole("button", { name: /^opt is a,b or/ }).click();
    await page.getByText("40 trials", { exact: true }).first().waitFor();
  }));

test("a narrow range, and a name that no filter can hold, choose what was dragged over", () =>
  on(server, "#/e/default/odd/analysis", async (page) => {
    await drawn(page);
    await brush(page, 2, 0, 0.5);
    await page.getByText(/^[12]\d of 40 trials shown/).first().waitFor();
    assert.match(await filterOf(page), /^param\.narrow>=0\.9822\d+$/);
    await brush(page, 0, 0.02, 0.98);
    await page.getByRole("button", { name: /^p, "q" \| x<1 from 0\.0/ }).waitFor();
    await page.getByText(/^[12]?\d of 40 trials shown/).first().waitFor();
  }));

test("the lane beneath an axis chooses the trials without a value", () =>
  on(server, "#/e/default/models/analysis", async (page) => {
    await drawn(page);
    const n = await trialsOf("models", "depth", (value) => value === undefined);
    await page.locator(".none-area").nth(1).click();
    await page.getByRole("button", { name: "depth: none" }).waitFor();
    await page.getByText(said(n, 24)).first().waitFor();
    await page.locator(".none-area").nth(1).click();
    await page.getByText("24 trials", { exact: true }).first().waitFor();
  }));

test("the scales of colours have numbers, and a cell of the contour says its values", () =>
  on(server, "#/e/default/models/analysis", async (page) => {
    const contour = page.getByRole("region", { name: "Two parameters at once" });
    await contour.getByText(/^worst -?[\d.e-]+ -?[\d.e-]+ best$/).waitFor();
    const parallel = page.getByRole("region", { name: "Parallel coordinates" });
    // The objectives are the cosines of 0 to 21, the least of them the best.
    await parallel.getByText(/^worst 1 -0\.9\d+ best$/).waitFor();
    assert.match(await tipOf(contour, 200, 100),
      /^model svm, c 1\.\d+\nloss -?[\d.e-]+\nfrom -?[\d.e-]+ to -?[\d.e-]+ with 90 % prob/);
    await contour.locator("canvas").hover({ position: { x: 20, y: 100 } });
    assert.equal(await contour.locator(".tip").count(), 0);
    // A forest has no c.
    await contour.getByText("blank: no trial can have both").waitFor();
    const { width } = await contour.locator("canvas").boundingBox();
    assert.match(await tipOf(contour, width - 40, 100),
      /^model forest, c [\d.]+\nno trial can have both$/);
    assert.equal(await ink(page, ".contour canvas", { x: [0.7, 0.9], y: [0.1, 0.8] }), 0);
    assert.ok(await ink(page, ".contour canvas", { x: [0.2, 0.4], y: [0.1, 0.8] }) > 1000);
    await contour.getByLabel("Across").selectOption("depth");
    await contour.getByLabel("Up").selectOption("c");
    await contour.getByText("No trial can have both depth and c").waitFor();
  }));

test("the contour is blank where a sum of parameters is out of its bounds", async () => {
  await make("bounded", {
    parameters: [number("warmup", 0, 10), number("epochs", 0, 10)],
    shirabe: { space: { linear: [{ sum: { warmup: 1, epochs: -1 }, max: 0 }] } },
  }, { trials: 20, value: Math.cos });
  await on(server, "#/e/default/bounded/analysis?cx=warmup&cy=epochs", async (page) => {
    const contour = page.getByRole("region", { name: "Two parameters at once" });
    await contour.getByText("blank: no trial can have both").waitFor();
    const { width } = await contour.locator("canvas").boundingBox();
    assert.match(await tipOf(contour, width - 40, 300),
      /^warmup [\d.]+, epochs [\d.]+\nno trial can have both$/);
    assert.match(await tipOf(contour, 100, 30), /^warmup [\d.]+, epochs [\d.]+\nloss /);
  });
});

// Pixels in the colour of what is selected (--best, on a light page).
const marked = (page, selector) => page.locator(selector).first().evaluate((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let n = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i] === 0xc2 && data[i + 1] === 0x78 && data[i + 2] === 0 && data[i + 3] === 255) ++n;
  }
  return n;
});

test("trials that are selected stand out in every picture", async () => {
  const pictures = { analysis: [".parallel canvas", ".slice canvas", ".contour canvas"],
    timeline: [".lanes canvas"], "timeline?rows=all": [".lanes canvas"] };
  for (const [tab, selectors] of Object.entries(pictures)) {
    await on(server, `#/e/default/models/${tab}`, async (page) => {
      if (tab === "analysis") await page.getByText("Line and band").waitFor();
      for (const selector of selectors) {
        await page.locator(selector).first().waitFor();
        await page.waitForTimeout(500);
        const before = await marked(page, selector);
        await page.evaluate(() => {
          location.hash += `${location.hash.includes("?") ? "&" : "?"}sel=1.2`;
        });
        await page.getByText("2 trials selected").waitFor();
        await page.waitForTimeout(500);
        const more = (await marked(page, selector)) - before;
        assert.ok(more > 30, `${tab}: ${selector}: ${more} pixels`);
        await page.getByRole("button", { name: "Clear" }).click();
        await page.waitForTimeout(500);
        assert.equal(await marked(page, selector), before, `${tab}: ${selector}, cleared`);
      }
    });
  }
});

test("what a filter does not change says so while there is one", () =>
  on(server, "#/e/default/models/analysis", async (page) => {
    const notes = page.getByText(/filter does not change/);
    await page.getByText("hatched: the model does not know").waitFor();
    assert.equal(await notes.count(), 0);
    await page.getByRole("searchbox").fill("model=svm");
    await notes.nth(3).waitFor();
    assert.equal(await notes.count(), 4);
  }));

test("names of sixty letters stay within the page, and nothing lies on another", async () => {
  for (const width of [1400, 390]) {
    await on(server, "#/e/default/long/analysis", async (page) => {
      await page.getByText("hatched: the model does not know").waitFor();
      await drawn(page);
      const wider = await page.evaluate(() => {
        const parts = [...document.querySelectorAll(".bar-row > *, .slice figcaption, .panel")];
        return [document.documentElement, ...parts]
          .filter((one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0)
          .map((one) => one.className || one.tagName);
      });
      assert.deepEqual(wider, []);
      await page.locator(".overlay text", { hasText: "the first …" }).waitFor();
      // The last tick of a slice does not reach the edge.
      assert.equal(await ink(page, ".slice canvas", { x: [0.997, 1], y: [0.88, 1] }), 0);
    }, { viewport: { width, height: 900 } });
  }
});

// Of a panel, as it is to be pasted into a shell.
async function commandOf(page, panel) {
  await page.getByRole("region", { name: panel }).getByRole("button", { name: /more$/ }).click();
  await page.getByRole("menuitem", { name: "As command" }).click();
  const dialog = page.getByRole("dialog");
  const words = [await dialog.locator("code").innerText(), await dialog.innerText()];
  await page.keyboard.press("Escape");
  return words;
}

function draws(command, file) {
  const folder = fs.mkdtempSync(`${server.home}/plot-`);
  const done = spawnSync("sh", ["-c", command.replace(/^shirabe/, '"$SHIRABE"')], {
    cwd: folder, env: { ...process.env, SHIRABE: binary, SHIRABE_HOME: server.home },
    encoding: "utf8",
  });
  assert.equal(done.status, 0, `${command}: ${done.stderr}`);
  return fs.readFileSync(`${folder}/${file}`, "utf8");
}

test("the command of a picture draws the same, whatever its names are", async () => {
  await on(server, `#/e/default/odd/analysis?cx=opt&cy=${encodeURIComponent('p, "q" | x<1')}`,
    async (page) => {
      await page.getByText("hatched: the model does not know").waitFor();
      const [contour, all] = await commandOf(page, "Two parameters at once");
      assert.equal(contour,
        `shirabe plot odd contour -p opt -p 'p, "q" | x<1' -o contour.svg`);
      assert.doesNotMatch(all, /takes no filter/);
      assert.match(draws(contour, "contour.svg"), /x&lt;1/);
      const [parallel] = await commandOf(page, "Parallel coordinates");
      assert.match(draws(parallel, "parallel.svg"), /^<svg/);
      await page.getByRole("searchbox").fill("narrow>0.98222");
      const [slice, note] = await commandOf(page, "loss over each parameter");
      assert.match(draws(slice, "slice.svg"), /^<svg/);
      assert.match(note, /The command draws all trials: it takes no filter/);
    });
  await on(server, "#/e/default/models/analysis?filter=model%3Dsvm", async (page) => {
    await page.getByText("No trial shown with a result has depth.").waitFor();
    const [slice] = await commandOf(page, "loss over each parameter");
    assert.equal(slice, "shirabe plot models slice -p model -p c -o slice.svg");
    assert.match(draws(slice, "slice.svg"), /^<svg/);
  });
  await on(server, "#/e/default/models/curves?top=5", async (page) => {
    const [curves, note] = await commandOf(page, "Curves of loss");
    assert.equal(curves, "shirabe plot models curves --trials 5 -o curves.svg");
    assert.match(draws(curves, "curves.svg"), /^<svg/);
    assert.match(note, /The command draws 5 curves at most, over steps/);
  });
});

test("on a dark page the dots of bad trials are light enough to be seen", () =>
  on(server, "#/e/default/odd/analysis?model=off", async (page) => {
    await page.locator(".slice canvas").first().waitFor();
    await page.waitForTimeout(300);
    // Pixels near the darkest colour of the scale, which is none of the page's own.
    const dark = await page.locator(".slice canvas").first().evaluate((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let [found, drawn] = [0, 0];
      for (let i = 0; i < data.length; i += 4) {
        drawn += data[i + 3] > 128;
        found += data[i + 3] > 128 && [68, 1, 84].every((c, k) => Math.abs(data[i + k] - c) < 30);
      }
      return { found, drawn };
    });
    assert.ok(dark.drawn > 100);
    assert.equal(dark.found, 0);
  }, { colorScheme: "dark" }));
