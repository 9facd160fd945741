// What changes while one looks: trials that come, a server that goes away and comes back, a token
// that is refused, an experiment that is deleted.
import assert from "node:assert/strict";
import { test } from "node:test";
import { asked, newHome, on, open, close, serve } from "./harness.mjs";

const one = "/api/v1/namespaces/default/experiments/live";

async function run(server, loss, end = "completed") {
  const { trial } = await server.call("POST", `${one}:ask`, { caller: `worker-${loss}` });
  const { number } = trial.status.shirabe;
  await server.call("POST", `${one}/trials/${number}:tell`, {
    ...(loss === null ? {} : { metrics: { loss }, step: 1 }), end,
  });
  return number;
}

test("with no trial the page says so, and results appear without a reload", async () => {
  const server = await serve({ home: newHome() });
  await server.call("POST", "/api/v1/experiments", asked("live"));
  await on(server, "#/e/default/live", async (page) => {
    await page.getByText("No result yet").waitFor();
    await page.getByText("No trials yet", { exact: true }).waitFor();
    await run(server, 0.5);
    await page.locator(".best-value", { hasText: "0.5" }).waitFor();
    await run(server, -0.25);
    await page.locator(".best-value", { hasText: "-0.25" }).waitFor();
    await run(server, null, "failed");
    await page.getByText("1 failed").first().waitFor({ state: "attached" });
    await page.getByRole("link", { name: "Trials", exact: true }).click();
    await page.getByText("3 trials", { exact: true }).waitFor();
    const { trial } = await server.call("POST", `${one}:ask`, { caller: "still-running" });
    const { number } = trial.status.shirabe;
    await server.call("POST", `${one}/trials/${number}:tell`,
      { metrics: { loss: 7.125 }, step: 3 });
    const row = page.getByRole("row", { name: /7\.125/ });
    await row.getByText("running").waitFor();
    await page.getByRole("link", { name: "Curves" }).click();
    await page.getByRole("img", { name: /3 curves of loss/ }).waitFor();
  });
});

test("a page that loads slower than changes come is shown all the same", async () => {
  const server = await serve({ home: newHome() });
  await server.call("POST", "/api/v1/experiments", asked("live"));
  await run(server, 100);
  await on(server, "", async (page) => {
    await page.route((url) => url.pathname === one, async (route) => {
      await new Promise((done) => setTimeout(done, 1500));
      await route.continue();
    });
    await page.goto(`${page.url().split("#")[0]}#/e/default/live`);
    await page.locator(".best-value", { hasText: "100" }).waitFor();
    let more = true;
    const changes = (async () => {
      for (let loss = 99; more && loss > 0; --loss) {
        await run(server, loss);
        await new Promise((done) => setTimeout(done, 200));
      }
      return more;
    })();
    try {
      await page.locator(".best-value", { hasText: /^\D*[1-9]\d?\D*$/ }).waitFor();
    } finally {
      more = false;
      assert.equal(await changes, false, "only once the changes had ended");
    }
  });
});

test("the list follows, and actions do what they say where they are allowed", async () => {
  const server = await serve({ home: newHome() });
  await server.call("POST", "/api/v1/experiments", asked("live"));
  await on(server, "", async (page) => {
    await page.getByRole("row", { name: /live/ }).waitFor();
    const reads = [];
    page.on("request", (one) => one.method() === "GET" && reads.push(new URL(one.url())));
    await server.call("POST", "/api/v1/experiments", asked("another"));
    await page.getByRole("row", { name: /another/ }).waitFor();
    await page.getByRole("checkbox", { name: "Select live" }).check();
    await page.getByRole("checkbox", { name: "Select another" }).check();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("row", { name: /live/ }).getByText("paused", { exact: true }).waitFor();
    await page.getByRole("row", { name: /another/ }).getByText("paused", { exact: true })
      .waitFor();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("row", { name: /live/ }).getByText("paused", { exact: true })
      .waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Clear" }).click();
    await page.getByRole("checkbox", { name: "Select another" }).check();
    await page.getByRole("button", { name: "Delete" }).click();
    const dialog = page.getByRole("dialog", { name: "Delete 1 experiment?" });
    await dialog.getByText("for good").waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    assert.equal((await server.call("GET", "/api/v1/experiments")).items.length, 2);
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("row", { name: /another/ }).waitFor({ state: "detached" });
    assert.equal((await server.call("GET", "/api/v1/experiments")).items.length, 1);
    // Deleted and made again between two looks: it is there, and without its past.
    await run(server, 0.25);
    await page.getByRole("row", { name: /live/ }).getByText("0.25").waitFor();
    await server.call("DELETE", one);
    await server.call("POST", "/api/v1/experiments", asked("live"));
    await page.getByRole("row", { name: /live/ }).getByText("0.25").waitFor({ state: "detached" });
    await page.getByRole("row", { name: /live/ }).waitFor();
    // One request says what has changed of all experiments, and says no more than that.
    const summaries = reads.filter((url) => url.pathname === "/api/v1/summaries");
    assert.ok(summaries.length > 0);
    for (const url of summaries) assert.ok(Number(url.searchParams.get("since")) > 0, url.href);
    assert.ok(!reads.some((url) => /\/experiments(\/[^/]*)?$/.test(url.pathname)));
  });
});

test("a server that goes away is said to be away, and what it has then is shown", async () => {
  const home = newHome();
  const server = await serve({ home });
  await server.call("POST", "/api/v1/experiments", asked("live"));
  await run(server, 3);
  const page = await open(server, "#/e/default/live", { expects: /ERR_|Failed to load/ });
  await page.locator(".best-value", { hasText: "3" }).waitFor();
  await server.stop();
  await page.getByText("The server does not answer; trying again").waitFor();
  await page.locator(".best-value", { hasText: "3" }).waitFor();
  await server.start();
  await run(server, 2);
  await page.getByText("The server does not answer; trying again").waitFor({ state: "detached" });
  await page.locator(".best-value", { hasText: "2" }).waitFor();
  await close(page);
  await server.stop();
});

test("a token is asked for once, kept in the tab, and asked for when it is refused", async () => {
  const admin = "an-administrators-token-1";
  const home = newHome();
  const server = await serve({ home, tokens: [admin] });
  await server.call("POST", "/api/v1/experiments", asked("live"));
  const page = await open(server, "", { expects: /401|403|ERR_|Failed/ });
  await page.getByRole("heading", { name: "This server asks for a token" }).waitFor();
  await page.getByLabel("Token").fill("not the one");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("does not know this token").waitFor();
  await page.getByLabel("Token").fill(admin);
  await page.keyboard.press("Enter");
  await page.getByRole("row", { name: /live/ }).waitFor();
  await page.reload();
  await page.getByRole("row", { name: /live/ }).waitFor();
  const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, document.cookie]));
  assert.ok(!stored.includes(admin));
  await server.stop();
  server.tokens = ["another-administrators-token"];
  await server.start();
  await page.getByRole("heading", { name: "This server asks for a token" }).waitFor();
  await close(page);
  await server.stop();
});

test("a link that is opened in a new tab needs no token of its own", async () => {
  const admin = "an-administrators-token-4";
  const server = await serve({ home: newHome(), tokens: [admin] });
  await on(server, `#token=${admin}`, async (page) => {
    await page.getByText("No experiments yet").waitFor();
    const [other] = await Promise.all([
      page.context().waitForEvent("page"),
      page.evaluate(() => window.open(`${location.pathname}#/capacity`, "_blank", "noopener")),
    ]);
    await other.locator(".facts").first().waitFor();
    const stored = await other.evaluate(() => JSON.stringify([{ ...localStorage }, document.cookie]));
    assert.ok(!stored.includes(admin));
    await other.close();
  });
  // Where no tab has it, it is asked for.
  await on(server, "", async (page) => {
    await page.getByRole("heading", { name: "This server asks for a token" }).waitFor();
  }, { expects: /401|Failed/ });
});

test("a token in the address is taken out of it at once", async () => {
  const admin = "an-administrators-token-2";
  const server = await serve({ home: newHome(), tokens: [admin] });
  await server.call("POST", "/api/v1/experiments", asked("live"));
  await on(server, `#token=${admin}&/e/default/live`, async (page) => {
    await page.getByRole("heading", { name: "live" }).waitFor();
    assert.equal(await page.evaluate(() => location.hash), "#/e/default/live");
  });
  // Pasted where the page is open, and asks for one.
  await on(server, "", async (page) => {
    await page.getByRole("heading", { name: "This server asks for a token" }).waitFor();
    await page.evaluate((given) => (location.hash = `#token=${given}&/e/default/live`), admin);
    await page.getByRole("heading", { name: "live" }).waitFor();
    assert.equal(await page.evaluate(() => location.hash), "#/e/default/live");
  }, { expects: /401/ });
});

test("a user of one namespace sees what is theirs, and no useless button", async () => {
  const [admin, user] = ["an-administrators-token-3", "a-users-token-of-red"];
  const server = await serve({ home: newHome(), tokens: [admin, `user red ${user}`] });
  await server.call("POST", "/api/v1/namespaces/red/experiments", asked("theirs"), admin);
  await server.call("POST", "/api/v1/namespaces/blue/experiments", asked("hidden"), admin);
  await on(server, `#token=${user}&/`, async (page) => {
    await page.getByRole("row", { name: /theirs/ }).waitFor();
    assert.equal(await page.getByText("hidden").count(), 0);
    await page.goto(`${server.url}/#/e/blue/hidden`);
    await page.locator(".problem").first().waitFor();
    assert.equal(await page.getByRole("button", { name: "Delete" }).count(), 0);
    await page.goto(`${server.url}/#/e/red/theirs`);
    await page.getByRole("button", { name: "Delete" }).waitFor();
    // A new one is theirs too.
    await page.goto(`${server.url}/#/new?from=trials+that+you+run+yourself`);
    await page.getByText("valid", { exact: true }).waitFor();
    const namespace = page.getByLabel("Namespace");
    assert.equal(await namespace.inputValue(), "red");
    await namespace.fill("blue");
    await namespace.press("Tab");
    await page.getByText("You may not create experiments in the namespace blue.").waitFor();
    await namespace.fill("red");
    await namespace.press("Tab");
    await page.getByRole("button", { name: "Create" }).click();
    await page.waitForURL(/#\/e\/red\/[a-z-]+$/);
  }, { expects: /403/ });
});

test("who may only look sees no button that changes anything", async () => {
  const server = await serve({ home: newHome() });
  await server.call("POST", "/api/v1/experiments", asked("live"));
  await run(server, 1);
  const page = await open(server, "", {});
  const rights = { name: "viewer", namespace: "default", read: true, create: false,
    change: false, delete: false };
  await page.route("**/api/v1/rights*", (route) => route.fulfill({ json: rights }));
  const pages = [["#/e/default/live", "live"], ["#/t/default/live/1", "live / 1"]];
  for (const [address, there] of pages) {
    await page.goto(`${server.url}/${address}`);
    await page.reload();
    await page.getByRole("heading", { name: there, exact: true }).waitFor();
    await page.getByText("viewer").waitFor();
    const names = await page.getByRole("button").allInnerTexts();
    for (const name of ["Pause", "Stop", "Delete", "Retry", "New from this", "Create"]) {
      assert.ok(!names.includes(name), `${address} has ${name}`);
    }
  }
  await close(page);
});

test("a tab that was opened while the server was away is there once it is back", async () => {
  const server = await serve({ home: newHome() });
  await server.call("POST", "/api/v1/experiments", asked("live"));
  const page = await open(server, "#/e/default/live", { expects: /ERR_|Failed/ });
  await page.getByText("No trials yet", { exact: true }).waitFor();
  await server.stop("SIGKILL");
  await page.getByText("The server does not answer; trying again").waitFor();
  const files = /\/assets\//;
  await page.route(files, (route) => route.abort());
  await page.getByRole("link", { name: "Curves" }).click();
  await page.getByText("This part of the page could not be loaded").waitFor();
  await page.unroute(files);
  await server.start();
  const empty = page.getByText("No values yet").or(page.getByText("No trial meets this filter"));
  await empty.waitFor();

  // One that is asked for while it is away, and refused after it is back.
  await server.stop("SIGKILL");
  await page.getByText("The server does not answer; trying again").waitFor();
  let refuse;
  const back = new Promise((resolve) => (refuse = resolve));
  await page.route(files, (route) => back.then(() => route.abort()), { times: 1 });
  const asks = page.waitForRequest(files);
  await page.getByRole("link", { name: "Events" }).click();
  await asks;
  await server.start();
  await page.getByText("The server does not answer; trying again").waitFor({ state: "hidden" });
  refuse();
  await page.getByText("the experiment was created").waitFor();
  await close(page);
});

test("a server that went away before it told of any change is asked for calmly", async () => {
  const server = await serve({ home: newHome() });
  await server.call("POST", "/api/v1/experiments", asked("live"));
  const page = await open(server, "", { expects: /ERR_|Failed/ });
  await page.getByRole("link", { name: "live" }).waitFor();
  const held = [];
  await page.route(/\/watch/, (route) => held.push(route));
  await page.getByRole("link", { name: "live" }).click();
  await page.getByText("No trials yet", { exact: true }).waitFor();
  await server.stop("SIGKILL");
  for (const one of held) await one.abort();
  await page.unroute(/\/watch/);
  await page.getByText("The server does not answer; trying again").waitFor();
  let requests = 0;
  page.on("request", () => ++requests);
  await page.waitForTimeout(3000);
  assert.ok(requests < 20, `${requests} requests in 3 s`);
  await server.start();
  await page.getByText("The server does not answer; trying again").waitFor({ state: "hidden" });
  await run(server, 1);
  await page.getByText("No trials yet", { exact: true }).waitFor({ state: "hidden" });
  await close(page);
});

// Holds back the page's watch of changes until it is released.
async function holdWatch(page) {
  let release;
  const released = new Promise((resolve) => (release = resolve));
  await page.route(/\/watch$/, (route) => released.then(() => route.continue()));
  return release;
}

test("what changes before the watch is open is shown", async () => {
  const server = await serve({ home: newHome() });
  await server.call("POST", "/api/v1/experiments", asked("live"));
  await on(server, "", async (page) => {
    await page.getByRole("link", { name: "live" }).waitFor();
    const release = await holdWatch(page);
    const watch = page.waitForRequest(/\/live\/watch$/);
    await page.getByRole("link", { name: "live" }).click();
    await watch;
    await run(server, 0.75);
    release();
    await page.locator(".best-value", { hasText: "0.75" }).waitFor();
  });
});

test("a page asks for what it shows once, after its watch is open", async () => {
  const server = await serve({ home: newHome() });
  await server.call("POST", "/api/v1/experiments", asked("live"));
  await run(server, 0.75);
  await on(server, "", async (page) => {
    // However slow the machine is, the watch is waited for.
    await page.addInitScript((real = setTimeout) => {
      window.setTimeout = (act, ms, ...more) => (ms === 1000 ? 0 : real(act, ms, ...more));
    });
    await page.reload();
    await page.getByRole("row", { name: /0\.75/ }).waitFor();
    const order = [];
    const note = (word, of) => (other) => {
      const path = new URL(other.url()).pathname;
      if (of.test(path)) order.push(word + path.slice(one.length));
    };
    page.on("request", note("asks ", /\/live(\/watch|\/columns)?$/));
    page.on("response", note("has ", /\/live\/watch$/));
    await page.getByRole("link", { name: "live" }).click();
    await page.locator(".best-value", { hasText: "0.75" }).waitFor();
    await page.getByRole("img", { name: /1 trial/ }).first().waitFor();
    assert.deepEqual(order, ["asks /watch", "has /watch", "asks ", "asks /columns"]);
  });
});

test("a watch that is slow to open holds up no page, and no change is missed", async () => {
  const server = await serve({ home: newHome() });
  await server.call("POST", "/api/v1/experiments", asked("live"));
  await run(server, 0.5);
  const { trial } = await server.call("POST", `${one}:ask`, { caller: "still-running" });
  const { number } = trial.status.shirabe;
  await on(server, "#/capacity", async (page) => {
    await page.locator(".facts").first().waitFor();
    const release = await holdWatch(page);
    await page.goto(`${server.url}/#/t/default/live/${number}`);
    await page.getByText("running", { exact: true }).first().waitFor();
    await server.call("POST", `${one}/trials/${number}:tell`,
      { metrics: { loss: 0.125 }, step: 1, end: "completed" });
    release();
    await page.locator(".page-head", { hasText: "0.125" }).waitFor();
  });
  await on(server, "#/capacity", async (page) => {
    await page.locator(".facts").first().waitFor();
    const release = await holdWatch(page);
    await page.goto(`${server.url}/#/e/default/live`);
    await page.locator(".best-value", { hasText: "0.125" }).waitFor();
    await run(server, 0.0625);
    release();
    await page.locator(".best-value", { hasText: "0.0625" }).waitFor();
  });
});
