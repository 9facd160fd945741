// `shirabe report`: one file that a browser shows from the disk, without a server or a network, in
// which nothing runs but the page, and nothing secret stands.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import {
  PATIENCE, asked, binary, newHome, open, serve, shirabe, violations, work,
} from "./harness.mjs";

const HTML = "</script><!--<script><img src=x onerror=\"window.executed=1\">" +
  "<script>window.executed=1</script>";
const SECRETS = {
  value: "correct-horse-battery", referred: "staple-of-the-shell", printed: "Tr0ub4dor&3",
  key: "AKIAABCDEFGHIJKLMNOP",
};
let home;
let server;

function reportOf(name, file, ...words) {
  shirabe(home, "report", name, "-o", file, ...words);
  return { url: pathToFileURL(file).href, file };
}

// What the file holds, decoded.
function contentOf(file) {
  const text = fs.readFileSync(file, "utf8");
  const data = JSON.parse(/<script type="application\/json" id="report">(.*?)<\/script>/s
    .exec(text)[1]);
  return {
    text, data,
    bodies: data.bodies.map((one) => gunzipSync(Buffer.from(one, "base64")).toString("latin1")),
  };
}

// Opens the file with no network there is; complaints as in the harness.
async function onReport(report, hash, act, options = {}) {
  const page = await open({ url: report.url }, hash, { offline: true, file: true, ...options });
  try {
    await act(page);
    assert.equal(await page.evaluate(() => window.executed ?? null), null);
  } catch (error) {
    const picture = `${work}/failed-${Date.now()}.png`;
    await page.screenshot({ path: picture }).catch(() => undefined);
    error.message += `\n${page.complaints.join("\n")}\npicture: ${picture}`;
    throw error;
  }
  const { complaints } = page;
  await page.context().close();
  assert.deepEqual(complaints, []);
}

before(async () => {
  home = newHome(true);
  process.env.MY_SHELL_TOKEN = SECRETS.referred;
  fs.writeFileSync(`${home}/secret.yaml`, `apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata:
  name: secretive
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"env":[{"value":"${SECRETS.value}"}]}'
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  maxTrialCount: 3
  parallelTrialCount: 1
  parameters:
    - {name: x, parameterType: double, feasibleSpace: {min: "0", max: "1"}}
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: x, reference: x}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            containers:
              - name: main
                image: none
                env:
                  - {name: CODE, value: ${SECRETS.value}}
                  - {name: RATE, value: "\${trialParameters.x}"}
                command: [sh, ${home}/trial.sh, --api-key, ${SECRETS.printed}]
            restartPolicy: Never
`);
  fs.writeFileSync(`${home}/trial.sh`, `
echo "it is $CODE and $MY_SHELL_TOKEN"
echo 'password: "${SECRETS.printed}", and ${SECRETS.key}'
printf '%s\\n' '${HTML}'
echo loss=$RATE
echo step=2 loss=0.5
`);
  shirabe(home, "run", "-q", "-f", `${home}/secret.yaml`);
  server = await serve({ home, tokens: ["the-admins-token-1"] });
  const one = "/api/v1/namespaces/default/experiments/hostile";
  await server.call("POST", "/api/v1/experiments", asked("hostile", {
    objective: { objectiveMetricName: HTML, additionalMetricNames: ["a,b \"c\""] },
    parameters: [
      { name: HTML, parameterType: "double", feasibleSpace: { min: "-5", max: "-1" } },
      { name: "opt, \"x\"", parameterType: "categorical",
        feasibleSpace: { list: ["</script>", "a,b", "say \"hi\"", HTML, "\u2028$&$'"] } },
    ],
  }));
  for (const [i, value] of [-1e-9, -12345.678, 3e-12, -7, 0, "NaN"].entries()) {
    const { trial } = await server.call("POST", `${one}:ask`, { caller: `w${i}` });
    await server.call("POST", `${one}/trials/${trial.status.shirabe.number}:tell`, {
      metrics: { [HTML]: value, "a,b \"c\"": i }, step: 10 * i, end: "completed", message: HTML,
    });
  }
});

test("all pages of an experiment work from the disk, with no network", async () => {
  const report = reportOf("digits-spot", `${work}/digits.html`, "--logs");
  const at = "#/e/default/digits-spot";
  await onReport(report, "", async (page) => {
    await page.getByRole("heading", { name: "digits-spot" }).waitFor();
    await page.locator(".best-value").waitFor();
    assert.match(await page.locator(".report-bar").innerText(), /Report of default\/digits-spot/);
    await page.getByText(/things? left out/).click();
    await page.getByText(/Values of environment variables/).waitFor();
    assert.deepEqual(await violations(page), []);
  });
  await onReport(report, `${at}/trials`, async (page) => {
    await page.locator(".grid-body .grid-row").first().waitFor();
    await page.getByRole("searchbox").fill("trial<=2");
    await page.getByText(/2 of \d+ trials/).waitFor();
  });
  await onReport(report, `${at}/analysis`, async (page) => {
    await page.getByText("hatched: the model does not know").waitFor();
    // Drawn by a worker, which stands in the file, too.
    await page.waitForFunction(() => [...document.querySelectorAll("canvas")].some((canvas) => {
      if (canvas.width === 0 || !canvas.closest(".parallel")) return false;
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return data.some((value) => value > 0);
    }));
    // The other way round than it was recorded.
    const [across, up] = [page.getByLabel("Across"), page.getByLabel("Up")];
    const [x, y] = [await across.inputValue(), await up.inputValue()];
    await across.selectOption(y);
    await up.selectOption(x);
    await page.getByText("hatched: the model does not know").waitFor();
  });
  await onReport(report, `${at}/curves`, async (page) => {
    await page.getByRole("img", { name: /curves? of/ }).waitFor();
    await page.getByLabel("Over").selectOption("time");
    await page.waitForURL(/over=time/);
    await page.getByRole("img", { name: /curves? of/ }).waitFor();
    await page.waitForTimeout(300);
    assert.equal(await page.locator(".problem").count(), 0);
    assert.notEqual(await page.locator(".legend .chip").count(), 0);
  });
  await onReport(report, `${at}/timeline`, (page) =>
    page.getByRole("img").first().waitFor());
  await onReport(report, `${at}/events`, (page) =>
    page.getByText("trial preempted").first().waitFor());
  await onReport(report, `${at}/specification`, async (page) => {
    await page.getByText("objectiveMetricName").waitFor();
    assert.equal(await page.getByRole("link", { name: "New from this" }).count(), 0);
  });
  await onReport(report, "#/t/default/digits-spot/1/metrics", (page) =>
    page.getByRole("img").first().waitFor());
  await onReport(report, "#/t/default/digits-spot/1/attempts", (page) =>
    page.getByText(/gpu-/).first().waitFor());
  await onReport(report, "#/t/default/digits-spot/1/log", async (page) => {
    // It prints only where it goes on from a checkpoint.
    const printed = shirabe(home, "logs", "digits-spot/1");
    await page.getByText(printed ? "This is all of it." : "It has printed nothing.").waitFor();
    if (!printed) return assert.equal(await page.getByRole("log").count(), 0);
    assert.equal((await page.getByRole("log").innerText()).trim(), printed.trim());
  });
});

test("no button changes anything, and no page leads to where there is none", async () => {
  const report = reportOf("hostile", `${work}/hostile.html`);
  for (const place of ["", "#/", "#/e/default/hostile/specification", "#/t/default/hostile/1"]) {
    await onReport(report, place, async (page) => {
      await page.getByText("hostile").first().waitFor();
      await page.waitForTimeout(300);
      const names = await page.locator("button, a").allInnerTexts();
      for (const name of names) {
        assert.doesNotMatch(name, /^(Pause|Resume|Stop|Delete|Retry|New|Sign|Capacity)/);
      }
    });
  }
  await onReport(report, "#/new", (page) => page.getByText("There is no such page").waitFor());
});

test("nothing that a trial or a user wrote is run, or ends the element that it is in", async () => {
  const report = reportOf("hostile", `${work}/hostile.html`);
  const { text, data } = contentOf(report.file);
  assert.equal(text.match(/<\/script>/g).length, 3);
  assert.equal(text.match(/<!--/g), null);
  assert.ok(data.replies.some(([path]) => path.includes("partial-dependence")));
  for (const tab of ["", "/trials", "/analysis", "/curves", "/timeline", "/events",
    "/specification"]) {
    await onReport(report, `#/e/default/hostile${tab}`, async (page) => {
      await page.getByRole("heading", { name: "hostile", exact: true }).waitFor();
      await page.waitForTimeout(300);
      assert.equal(await page.locator("img, iframe, object, embed").count(), 0);
    });
  }
  const logs = reportOf("secretive", `${work}/logs.html`, "--logs");
  await onReport(logs, "#/t/default/secretive/1/log", async (page) => {
    await page.getByText("This is all of it.").waitFor();
    assert.ok((await page.getByRole("log").innerText()).includes(HTML));
  });
});

test("its policy refuses scripts, styles and requests that were not built in", async () => {
  const report = reportOf("hostile", `${work}/hostile.html`);
  const { text } = contentOf(report.file);
  const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(text)[1];
  assert.doesNotMatch(policy, /unsafe|http|\*|'self'/);
  assert.match(policy, /default-src 'none'.*script-src 'sha256-.*connect-src 'none'/);
  await onReport(report, "", async (page) => {
    await page.getByRole("heading", { name: "hostile" }).waitFor();
    const refused = await page.evaluate(async () => {
      const found = [];
      document.addEventListener("securitypolicyviolation", (event) =>
        found.push(event.effectiveDirective));
      const script = document.createElement("script");
      script.textContent = "window.executed = 1";
      document.head.append(script);
      const style = document.createElement("style");
      style.textContent = "* { display: none }";
      document.head.append(style);
      document.body.insertAdjacentHTML("beforeend", "<a onclick='window.executed=1'>x</a>");
      document.body.lastElementChild.click();
      document.body.lastElementChild.remove();
      await fetch("http://127.0.0.1:9/").catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 200));
      return [...new Set(found)].sort();
    });
    assert.deepEqual(refused,
      ["connect-src", "script-src-attr", "script-src-elem", "style-src-elem"]);
  }, { expects: /Content Security Policy|violates/ });
});

test("values of the environment and what looks like a secret are in no part of it", async () => {
  const report = reportOf("secretive", `${work}/secret.html`, "--logs");
  const { text, bodies } = contentOf(report.file);
  const all = [text, ...bodies].join("\n");
  for (const [name, secret] of Object.entries(SECRETS)) {
    assert.ok(!all.includes(secret), `the ${name} one is there`);
  }
  assert.ok(!bodies.some((body) => /"log":\s*"[^"]/.test(body)), "nor are paths of logs");
  assert.match(all, /it is \(left out\) and \(left out\)/);
  assert.match(all, /password: "\(left out\)", and \(left out\)/);
  await onReport(report, "#/e/default/secretive/specification", async (page) => {
    const yaml = await page.locator("pre.code").innerText();
    assert.match(yaml, /name: CODE\s+value: \(left out\)/);
    assert.match(yaml, /value: "?\$\{trialParameters.x\}/);
    assert.match(yaml, /--api-key\s+- \(left out\)/);
  });
  // Without --logs there are none, and the page says how to get them.
  const bare = reportOf("secretive", `${work}/bare.html`);
  assert.ok(!contentOf(bare.file).data.replies.some(([path]) => path.endsWith("/log")));
  await onReport(bare, "#/t/default/secretive/1/log", (page) =>
    page.getByText(/shirabe report secretive --logs adds the logs/).waitFor());
});

test("with fewer pages of trials than trials it has the best, and says what is left out",
  async () => {
    const report = reportOf("secretive", `${work}/few.html`, "--trials", "1");
    const { data } = contentOf(report.file);
    assert.deepEqual([data.trials, data.trialPages], [3, 1]);
    const best = JSON.parse(shirabe(home, "best", "secretive", "-o", "json"));
    const number = Number(/-(\d+)$/.exec(JSON.stringify(best).match(/secretive-\d+/)[0])[1]);
    await onReport(report, `#/t/default/secretive/${number}`, (page) =>
      page.getByRole("heading", { name: `secretive / ${number}` }).waitFor());
    const other = number === 1 ? 2 : 1;
    await onReport(report, `#/t/default/secretive/${other}`, (page) =>
      page.getByText(/pages of 1 of 3 trials/).waitFor());
  });

test("a server's experiment makes the same report", () => {
  const grpc = JSON.parse(fs.readFileSync(`${home}/ready`, "utf8")).grpc;
  const [here, there] = [`${work}/here.html`, `${work}/there.html`];
  reportOf("secretive", here, "--logs");
  reportOf("secretive", there, "--logs", "--server", grpc, "--token-file", `${home}/token`);
  const [a, b] = [contentOf(here), contentOf(there)];
  const columns = a.data.replies.findIndex(([path]) => path.includes("/columns"));
  assert.deepEqual(b.data.replies.map(([path]) => path), a.data.replies.map(([path]) => path));
  assert.equal(b.bodies[columns], a.bodies[columns]);
  assert.deepEqual(b.data.leftOut, a.data.leftOut);
  assert.ok(!b.text.includes("the-admins-token-1"));
});

test("what cannot be written is said, and leaves the file of before", () => {
  const run = (...words) => spawnSync(binary, ["report", ...words], {
    env: { ...process.env, SHIRABE_HOME: home }, encoding: "utf8", maxBuffer: 1 << 28,
    timeout: PATIENCE,
  });
  const expect = (status, message, ...words) => {
    const done = run(...words);
    assert.equal(done.status, status, done.stderr);
    assert.match(done.stderr, message);
  };
  expect(3, /missing/, "missing", "-o", `${work}/x.html`);
  assert.ok(!fs.existsSync(`${work}/x.html`));
  expect(2, /does not end in .html/, "hostile", "-o", `${work}/x.pdf`);
  expect(2, /--trials/, "hostile", "-o", "-", "--trials", "-1");
  expect(3, /no\/such/, "hostile", "-o", `${work}/no/such/x.html`);
  fs.writeFileSync(`${work}/old.html`, "old");
  fs.mkdirSync(`${work}/old.html.tmp`, { recursive: true }); // in the way of what is written beside
  assert.notEqual(run("hostile", "-o", `${work}/old.html`).status, 0);
  assert.equal(fs.readFileSync(`${work}/old.html`, "utf8"), "old");
  fs.rmdirSync(`${work}/old.html.tmp`);
  assert.equal(run("hostile", "-o", `${work}/old.html`).status, 0);
  assert.match(fs.readFileSync(`${work}/old.html`, "utf8"), /^<!doctype html>/);
  const full = spawnSync("sh", ["-c", `"${binary}" report hostile -o - > /dev/full`], {
    env: { ...process.env, SHIRABE_HOME: home }, encoding: "utf8", timeout: PATIENCE,
  });
  assert.notEqual(full.status, 0);
  assert.match(full.stderr, /No space left/);
  const piped = run("hostile", "-o", "-");
  assert.equal(piped.status, 0);
  assert.equal(piped.stderr, "");
  assert.match(piped.stdout, /<\/html>\s*$/);
});
