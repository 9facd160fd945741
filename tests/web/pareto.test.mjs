// Several objectives and constraints: the front and which way it goes, what breaks a constraint,
// the trial that is best by weights, and the same in tables, words, forms and a report.
import assert from "node:assert/strict";
import fs from "node:fs";
import { before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { asked, close, newHome, on, open, serve, shirabe, violations, work } from "./harness.mjs";

const HTML = "<img src=x onerror=\"window.executed=1\">, it's=1";
const OTHER = "a,b \"c\"";
const two = "#/e/default/two";
let home;
let server;

async function tell(experiment, all) {
  const one = `/api/v1/namespaces/default/experiments/${experiment}`;
  for (const [i, metrics] of all.entries()) {
    const { trial } = await server.call("POST", `${one}:ask`, { caller: `w${i}` });
    if (metrics === null) continue; // it goes on
    await server.call("POST", `${one}/trials/${trial.status.shirabe.number}:tell`, {
      metrics, step: 1, end: "completed",
    });
  }
}

// Of trials 2, 3 and 1 none is better than another; 5 would be better than all, and breaks a
// constraint; 6 is as good as 1; 7 has no accuracy; 8 runs.
const RESULTS = [
  { loss: -2, accuracy: 0.5, memory: 1 }, { loss: -1, accuracy: 0.9, memory: 2 },
  { loss: -3, accuracy: 0.2, memory: 3 }, { loss: -1, accuracy: 0.8, memory: 8 },
  { loss: -4, accuracy: 0.95, memory: 9.5 }, { loss: -2, accuracy: 0.5, memory: 1 },
  { loss: -9, memory: 1 }, null,
];

before(async () => {
  home = newHome();
  server = await serve({ home });
  const create = (name, more) => server.call("POST", "/api/v1/experiments", asked(name, more));
  await create("two", { shirabe: {
    additionalObjectives: [{ metricName: "accuracy", type: "maximize", reference: 0.1 }],
    constraints: [{ metricName: "memory", max: 8 }],
  } });
  await tell("two", RESULTS);
  await create("none", { shirabe: {
    additionalObjectives: [{ metricName: "accuracy", type: "maximize" }],
  } });
  await create("one", {});
  await tell("one", [{ loss: 3 }]);
  await create("hostile", {
    objective: { objectiveMetricName: HTML },
    shirabe: {
      additionalObjectives: [
        { metricName: OTHER, type: "maximize" }, { metricName: "breaks", type: "minimize" },
      ],
      constraints: [{ metricName: "'m'; rm -rf ~", min: 0 }],
    },
  });
  await tell("hostile", [[1, 2, 3, 1], [2, 3, 3, 1], [1, 2, 4, 1], [0, 9, 0, -1]].map(
    ([a, b, c, d]) => ({ [HTML]: a, [OTHER]: b, breaks: c, "'m'; rm -rf ~": d })));
});

const front = (page) => page.getByRole("grid", { name: "The front" });
const chart = (page) => page.getByRole("region", { name: / against / });

async function trialsOf(grid) {
  await grid.locator(".grid-body .grid-row").first().waitFor();
  return (await grid.locator(".grid-body .grid-row a").allInnerTexts()).map(Number);
}

async function asTable(page, region) {
  await region.getByRole("button", { name: /: more$/ }).click();
  await page.getByRole("menuitem", { name: "As table" }).click();
  const rows = await region.locator("tbody tr").all();
  return Promise.all(rows.map((row) => row.locator("td").allInnerTexts()));
}

test("the front is that of the server, whichever way is better, without what breaks a constraint",
  () => on(server, `${two}/pareto`, async (page) => {
    const { status } = await server.call(
      "GET", "/api/v1/namespaces/default/experiments/two");
    const names = status.shirabe.front.trials.map((one) => Number(one.trialName.slice(4)));
    assert.deepEqual([...names].sort(), [1, 2, 3]);
    assert.deepEqual(await trialsOf(front(page)), names);
    const facts = await page.locator(".facts dd").allInnerTexts();
    const volume = Number(status.shirabe.front.hypervolume.toPrecision(6));
    assert.deepEqual(facts.map((one) => one.split("\n").filter((line) => line !== "")), [
      ["3 trials", "none is better than another in every objective"],
      [String(volume), "measured from loss -1 (the worst so far), accuracy 0.1 (as specified)"],
      ["1", "memory ≤ 8"],
    ]);
    await page.getByText("1 trial breaks a constraint.").waitFor();
    await page.getByText("2 trials have no result: 1 runs or waits, 1 ended without one.").waitFor();
    await page.getByRole("img", {
      name: "3 trials on the front of 6 trials with a result; on the front loss from -3 to -1, " +
        "accuracy from 0.2 to 0.9; 1 breaks a constraint",
    }).waitFor();
    const cells = await asTable(page, chart(page));
    assert.deepEqual(cells.map(([trial, on_, , , breaks]) => [trial, on_, breaks]), [
      ["1", "yes", ""], ["2", "yes", ""], ["3", "yes", ""], ["4", "no", ""],
      ["5", "no", "memory by 1.5"], ["6", "no", ""],
    ]);
  }));

// How many pixels of a colour of the page there are in a part of the picture, given as shares of
// its width and height from its upper left corner.
function painted(page, name, [left, top, right, bottom]) {
  return page.evaluate(({ name, part }) => {
    const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`);
    probe.fillRect(0, 0, 1, 1);
    const wanted = probe.getImageData(0, 0, 1, 1).data;
    const canvas = document.querySelector(".chart canvas");
    const over = document.querySelector(".chart .u-over").getBoundingClientRect();
    const box = canvas.getBoundingClientRect();
    const scale = canvas.width / box.width;
    const [x, y] = [over.left - box.left + part[0] * over.width,
      over.top - box.top + part[1] * over.height];
    const { data } = canvas.getContext("2d").getImageData(x * scale, y * scale,
      (part[2] - part[0]) * over.width * scale, (part[3] - part[1]) * over.height * scale);
    let n = 0;
    for (let i = 0; i < data.length; i += 4) {
      if ([0, 1, 2].every((k) => Math.abs(data[i + k] - wanted[k]) < 12)) ++n;
    }
    return n;
  }, { name, part: [left, top, right, bottom] });
}

test("the line of the front ends where both objectives are worst: here right and below", () =>
  on(server, `${two}/pareto?broken=hide`, async (page) => {
    await page.locator(".chart canvas").waitFor();
    await page.getByText("1 trial breaks a constraint, and is hidden.").waitFor();
    await page.waitForTimeout(300);
    // From -3.1 to -0.9 and from 0.165 to 0.935: the best loss is at the left, and from there the
    // line goes down; the best accuracy is above, and from there it goes to the right.
    assert.ok(await painted(page, "best", [0.03, 0.97, 0.06, 1]) > 2, "below the best loss");
    assert.equal(await painted(page, "best", [0, 0, 0.4, 0.3]), 0, "above it");
    assert.ok(await painted(page, "best", [0.98, 0.03, 1, 0.06]) > 2, "beside the best accuracy");
    assert.equal(await painted(page, "best", [0.97, 0.3, 1, 1]), 0, "below it");
  }));

test("what breaks a constraint has a shape of its own, says by how much, and can be hidden", () =>
  on(server, `${two}/pareto`, async (page) => {
    await page.locator(".chart canvas").waitFor();
    await page.waitForTimeout(300);
    // Trial 5, the best in both, in the upper left corner.
    const corner = [0, 0, 0.12, 0.15];
    assert.ok(await painted(page, "bad", corner) > 10);
    assert.equal(await painted(page, "best", corner), 0);
    const box = await page.locator(".chart .u-over").boundingBox();
    await page.mouse.move(box.x + box.width * 0.05 / 1.1, box.y + box.height * 0.05 / 1.1);
    assert.equal(await page.locator(".tip").innerText(),
      "trial 5, breaks a constraint\nloss -4\naccuracy 0.95\nbreaks memory by 1.5");
    await page.getByLabel("hide those that break a constraint").check();
    await page.waitForURL(/broken=hide/);
    await page.waitForFunction(() => !document.querySelector(".tip"));
    await page.mouse.move(0, 0);
    await page.waitForTimeout(200);
    assert.equal(await painted(page, "bad", [0, 0, 1, 1]), 0);
    const cells = await asTable(page, chart(page));
    assert.deepEqual(cells.map(([trial]) => trial), ["1", "2", "3", "4", "6"]);
  }));

test("weights pick what the command line picks, and say it as a command", () =>
  on(server, `${two}/pareto`, async (page) => {
    const panel = page.getByRole("region", { name: "Best by weights" });
    for (const [loss, accuracy] of [[3, 0.5], [0.5, 3], [2, 1.5], [0, 1]]) {
      await panel.getByRole("slider", { name: "loss" }).fill(String(loss));
      await panel.getByRole("slider", { name: "accuracy" }).fill(String(accuracy));
      const flags = [["loss", loss], ["accuracy", accuracy]].filter(([, one]) => one > 0)
        .flatMap(([name, one]) => ["--weights", `${name}=${one}`]);
      await panel.getByText(`shirabe best two ${flags.join(" ")}`, { exact: true }).waitFor();
      const { trial } = JSON.parse(
        shirabe(home, "best", "two", ...flags, "-o", "json", "-q"));
      await panel.getByRole("link", { name: `Trial ${trial.slice(4)}`, exact: true }).waitFor();
    }
    await page.waitForURL(/w=0_1/);
    await panel.getByRole("button", { name: "Copy", exact: true }).click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()),
      "shirabe best two --weights accuracy=1");
    await front(page).getByRole("row", { name: /2 ★ picked/ }).waitFor();
    await panel.getByRole("slider", { name: "accuracy" }).fill("0");
    await panel.getByText("Give one objective at least a weight above 0.").waitFor();
    await panel.getByRole("slider", { name: "loss" }).focus();
    await page.keyboard.press("ArrowRight");
    await panel.getByText("shirabe best two --weights loss=0.5", { exact: true }).waitFor();
  }));

test("filter and selection are those of all tabs", () =>
  on(server, `${two}/pareto?filter=objective<-1`, async (page) => {
    assert.deepEqual(await trialsOf(front(page)), [3, 1]);
    await page.getByText("2 of 3 trials shown").waitFor();
    await front(page).getByRole("checkbox", { name: "Select trial 3" }).check();
    await front(page).focus();
    await page.keyboard.press("End");
    await page.keyboard.press("x");
    await page.getByText("2 trials selected").waitFor();
    await page.getByRole("navigation", { name: "Views of this experiment" })
      .getByRole("link", { name: "Trials" }).click();
    await page.getByText("2 trials selected").waitFor();
    const grid = page.getByRole("grid", { name: "Trials" });
    await grid.getByRole("row", { selected: true }).nth(1).waitFor();
    const headings = await grid.getByRole("columnheader").allInnerTexts();
    assert.deepEqual(headings.map((one) => one.replace(/[▲▼\s]/g, "")).slice(2, 6),
      ["State", "loss", "accuracy", "Breaks"]);
    await page.getByRole("searchbox").fill("breaks=memory");
    await grid.getByText("memory by 1.5").waitFor();
    assert.deepEqual(await trialsOf(grid), [5]);
    await page.getByText("shirabe get trials two", { exact: true }).waitFor();
  }));

// A reply in columns (docs/design/formats.md).
function columnsOf(rows, columns) {
  const head = Buffer.from(JSON.stringify({
    rows, total: rows, revision: 1, columns: columns.map(({ name, dictionary }, i) => ({
      name, kind: dictionary ? "category" : "number", offset: i * rows,
      ...(dictionary ? { dictionary } : {}),
    })),
  }));
  const length = Math.ceil(head.length / 8) * 8;
  const before = Buffer.alloc(16 + length, " ");
  before.write("SHIRABE\u0001");
  before.writeUInt32LE(length, 8);
  before.writeUInt32LE(0, 12);
  head.copy(before, 16);
  return Buffer.concat([before, ...columns.map((one) => Buffer.from(one.values.buffer))]);
}

test("100,000 trials, half of them on the front: the table draws what is in sight", async () => {
  const n = 100_000;
  const made = (name, value, dictionary) =>
    ({ name, dictionary, values: Float64Array.from({ length: n }, (_, i) => value(i)) });
  // Every other one is a little worse than the one before it; of those every tenth breaks.
  const body = columnsOf(n, [
    made("trial", (i) => i + 1), made("state", () => 0, ["Succeeded"]),
    made("objective", (i) => (i - i % 2) * 1e-3 - 50 + (i % 2) * 1e-4),
    made("metric.accuracy", (i) => (i - i % 2) * 1e-3 - 20),
    made("metric.memory", (i) => (i % 20 === 19 ? 99 : 1)), made("end", (i) => i),
    made("param.lr", (i) => i / n),
  ]);
  const page = await open(server, "#/e/default/one");
  await page.route(/experiments\/two\/columns/, (route) =>
    route.fulfill({ body, contentType: "application/vnd.shirabe.columns" }));
  await page.evaluate((hash) => (location.hash = hash), `${two}/pareto`);
  const start = Date.now();
  await page.getByRole("img", { name: /^50,000 trials on the front of 100,000 trials/ }).waitFor();
  await page.getByText("5,000 trials break a constraint.").waitFor();
  assert.ok(Date.now() - start < 10_000, `it took ${Date.now() - start} ms`);
  assert.equal(await front(page).getAttribute("aria-rowcount"), "50001");
  assert.ok(await front(page).locator(".grid-body .grid-row").count() < 60);
  await page.waitForTimeout(300);
  // Both grow: the line goes from the lower left, where the loss is best, to the upper right.
  assert.ok(await painted(page, "best", [0.45, 0.45, 0.55, 0.55]) > 50);
  assert.equal(await painted(page, "best", [0, 0, 0.3, 0.3]), 0);
  await front(page).focus();
  await page.keyboard.press("End");
  await front(page).getByRole("link", { name: "99999", exact: true }).waitFor();
  await close(page);
});

test("an experiment without a result, and one with one objective, say so", async () => {
  await on(server, "#/e/default/none/pareto", async (page) => {
    await page.getByText("No trials yet").waitFor();
    await page.getByText("No trial is on the front yet").first().waitFor();
    assert.match((await page.locator(".facts dd").allInnerTexts()).join(), /^0 trials\n[^]*,–$/);
    assert.deepEqual(await violations(page), []);
  });
  await on(server, "#/e/default/one/pareto", async (page) => {
    await page.getByText("This experiment has one objective").waitFor();
    const tabs = page.getByRole("navigation", { name: "Views of this experiment" });
    assert.equal(await tabs.getByRole("link", { name: "Pareto" }).count(), 0);
  });
});

test("three objectives with hostile names: any two of them, and commands a shell reads", () =>
  on(server, "#/e/default/hostile/pareto", async (page) => {
    assert.deepEqual(await trialsOf(front(page)), [1, 2]);
    await page.getByRole("region", { name: `${OTHER} against ${HTML}` }).waitFor();
    await page.getByLabel(/^Up/).selectOption("breaks");
    await page.getByRole("region", { name: `breaks against ${HTML}` }).waitFor();
    await page.getByLabel(/^Across/).selectOption("breaks");
    await page.getByRole("region", { name: `${HTML} against breaks` }).waitFor();
    const slider = page.getByRole("slider", { name: HTML });
    await slider.fill("2");
    const command = await page.getByRole("region", { name: "Best by weights" })
      .locator(".command code").innerText();
    assert.equal(command, "shirabe best hostile " +
      `--weights '<img src=x onerror="window.executed=1">, it'\\''s=1=2' ` +
      `--weights 'a,b "c"=1' --weights breaks=1`);
    assert.equal(await page.evaluate(() => window.executed ?? null), null);
    assert.equal(await page.locator("img").count(), 0);
    assert.deepEqual(await violations(page), []);
  }));

test("overview, trial, comparison and list tell of the front and of constraints", async () => {
  await on(server, two, async (page) => {
    await page.getByText("with accuracy 0.2").waitFor();
    await page.getByText(/It is the best in the first objective, of/).waitFor();
    // Neither trial 5, which breaks a constraint, nor 7, which lacks a metric, is the best so far.
    await page.getByRole("img", { name: /the best loss, -3, is that of trial 3/ }).waitFor();
    await page.getByText("2 improvements").waitFor();
    await page.getByRole("link", { name: "3 trials on the front" }).click();
    await page.waitForURL(/two\/pareto$/);
  });
  await on(server, "#/t/default/two/5", async (page) => {
    await page.getByText("loss -4 · accuracy 0.95").waitFor();
    await page.getByText("breaks memory by 1.5").waitFor();
    const rows = page.getByRole("region", { name: "Constraints" }).getByRole("row");
    assert.deepEqual((await rows.nth(1).locator("th, td").allInnerTexts()).map((one) => one.trim()),
      ["memory ≤ 8", "9.5", "broken by 1.5"]);
    await page.getByText(/It is not on the front/).waitFor();
    assert.deepEqual(await violations(page), []);
  });
  await on(server, "#/t/default/two/7", async (page) => {
    const rows = page.getByRole("region", { name: "Objectives" }).getByRole("row");
    assert.equal(await rows.nth(2).locator("td").nth(1).innerText(), "–");
    await page.getByText("kept", { exact: true }).waitFor();
  });
  await on(server, "#/compare?t=default/two/5&t=default/two/2", async (page) => {
    const row = page.getByRole("row", { name: /^breaks/ });
    await row.waitFor();
    assert.deepEqual(await row.locator("td").allInnerTexts(), ["memory by 1.5", "nothing"]);
  });
  await on(server, "", async (page) => {
    await page.getByRole("row", { name: /two/ }).getByText("loss · of 3 on the front").waitFor();
  });
});

for (const colorScheme of ["light", "dark"]) {
  test(`the tab, ${colorScheme}, wide and on a phone: nothing that axe-core finds`, async () => {
    for (const viewport of [{ width: 1400, height: 900 }, { width: 390, height: 800 }]) {
      await on(server, `${two}/pareto`, async (page) => {
        await page.locator(".chart canvas").waitFor();
        await front(page).locator(".grid-row").first().waitFor();
        assert.deepEqual(await violations(page), []);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= viewport.width, `${wide} pixels wide`);
      }, { colorScheme, viewport });
    }
  });
}

test("the form adds objectives and constraints, and leaves what the YAML says of them", () =>
  on(server, "#/new?from=default%2Ftwo", async (page) => {
    await page.getByText("valid", { exact: true }).waitFor();
    const yaml = page.getByRole("textbox", { name: "YAML" });
    const says = (text) => page.waitForFunction((wanted) =>
      document.querySelector("textarea").value.includes(wanted), text);
    const objective = page.getByRole("group", { name: "Objective accuracy" });
    await objective.getByLabel("Reference, if any").fill("0.2");
    await objective.getByLabel("Reference, if any").press("Tab");
    await says("reference: 0.2");
    const metric = page.getByRole("group", { name: "Constraint on memory" })
      .getByLabel("Keep the metric");
    await metric.fill("seconds");
    await metric.press("Tab");
    await says("metricName: seconds");
    // Nothing of the first change is lost, nor is the old metric collected any longer.
    assert.match(await yaml.inputValue(), /reference: 0\.2/);
    assert.doesNotMatch(await yaml.inputValue(), /memory/);
    await page.getByRole("button", { name: "Add an objective" }).click();
    await page.getByRole("group", { name: "Objective metric-4" }).waitFor();
    await page.getByRole("button", { name: "Remove the objective metric-4" }).click();
    await page.getByRole("group", { name: "Objective metric-4" }).waitFor({ state: "detached" });
    assert.doesNotMatch(await yaml.inputValue(), /metric-4/);
    // What counts of a further metric stays when the first objective changes.
    await yaml.fill((await yaml.inputValue())
      .replace(/- name: accuracy\n(\s+)value: latest/, "- name: accuracy\n$1value: max")
      .replace("name: two-2", "name: two-9"));
    await page.waitForFunction(() => document.querySelector(".form input").value === "two-9");
    await page.getByLabel(/^Objective/).first().selectOption("maximize");
    await says("type: maximize\n    objectiveMetricName: loss");
    assert.match(await yaml.inputValue(), /- name: accuracy\n\s+value: max/);
    await page.getByText("valid", { exact: true }).waitFor();
    assert.deepEqual(await violations(page), []);
  }));

// With files that are not built in yet, the report's data in the page of those.
function reportOf(name) {
  const file = `${work}/${name}-report.html`;
  shirabe(home, "report", name, "-o", file);
  if (process.env.WEB_DIST) {
    const [, data] = /id="report">(.*?)<\/script>/s.exec(fs.readFileSync(file, "utf8"));
    const page = fs.readFileSync(`${process.env.WEB_DIST}/report.html`, "utf8");
    fs.writeFileSync(file, page.replace("{{report}}", () => data));
  }
  return pathToFileURL(file).href;
}

test("a report has the tab, with its weights and tables, without a network", async () => {
  for (const [name, expected] of [["two", [3, 1, 2]], ["hostile", [1, 2]]]) {
    const url = reportOf(name);
    const page = await open({ url }, `#/e/default/${name}/pareto`, { file: true, offline: true });
    assert.deepEqual(await trialsOf(front(page)), expected);
    await page.locator(".chart canvas").waitFor();
    await page.getByRole("region", { name: "Best by weights" })
      .getByRole("link", { name: /^Trial \d$/ }).waitFor();
    assert.equal(await page.evaluate(() => window.executed ?? null), null);
    await page.getByRole("searchbox").fill("trial=1");
    await page.getByText(/1 of \d trials shown/).first().waitFor();
    await close(page);
  }
});
