// The form of a new experiment changes the text beside it, and only what was changed in it.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { newHome, on, serve } from "./harness.mjs";

let server;
before(async () => {
  server = await serve({ home: newHome() });
});

const address = "#/new?from=a+program";
const yamlOf = (page) => page.getByRole("textbox", { name: "YAML" });
const text = (page) => yamlOf(page).inputValue();
const says = (page, wanted) => page.waitForFunction((part) =>
  document.querySelector("textarea.editor")?.value.includes(part), wanted);

const algorithm = (page) => page.getByRole("combobox", { name: "Algorithm" });

async function ready(page) {
  await page.getByText("valid", { exact: true }).waitFor();
  await algorithm(page).waitFor();
}

async function enter(field, value) {
  await field.fill(value);
  await field.press("Tab");
}

// Types, and waits until the server has read it.
async function write(page, next) {
  const read = page.waitForResponse((response) => response.url().endsWith("/api/v1/parse"));
  await yamlOf(page).fill(next);
  await read;
}

test("comments, order and quotes stay where the form changes a field", () =>
  on(server, address, async (page) => {
    await ready(page);
    const before = `# why\n${(await text(page)).replace("maxTrialCount: 30", "$& # a night")}`
      .replace("list: [adam, sgd]", "list: [\"adam\", 'sgd, \"slow\"'] # two");
    await write(page, before);
    await page.getByLabel("Value 2", { exact: true }).waitFor();
    await enter(page.getByLabel("Trials", { exact: true }), "40");
    await says(page, "maxTrialCount: 40 # a night");
    assert.equal(await text(page), before.replace("Count: 30", "Count: 40"));
    assert.equal(await page.getByLabel("Value 2", { exact: true }).inputValue(), 'sgd, "slow"');
    await enter(page.getByLabel("Value 1", { exact: true }), "adam, fast");
    await says(page, 'list: ["adam, fast", "sgd, \\"slow\\""] # two');
    await page.getByRole("button", { name: "Add value" }).click();
    await says(page, '"value-3"] # two');
    await page.getByText("valid", { exact: true }).waitFor();
  }));

test("what is being typed stays when the page is drawn again", () =>
  on(server, address, async (page) => {
    await ready(page);
    const trials = page.getByLabel("Trials", { exact: true });
    await trials.fill("4");
    // As a program would: the field keeps the focus.
    const read = page.waitForResponse((response) => response.url().endsWith("/api/v1/parse"));
    await yamlOf(page).evaluate((area) => {
      area.value += "# read again\n";
      area.dispatchEvent(new Event("input", { bubbles: true }));
    });
    await read;
    await page.getByText("valid", { exact: true }).waitFor();
    assert.equal(await trials.inputValue(), "4");
    await trials.press("0");
    await trials.press("Tab");
    await says(page, "maxTrialCount: 40");
    await enter(page.getByLabel("Trials", { exact: true }), "50");
    await says(page, "maxTrialCount: 50");
  }));

test("a parameter that is renamed or added is one that the template reads", () =>
  on(server, address, async (page) => {
    await ready(page);
    await enter(page.getByRole("group", { name: "lr", exact: true }).getByLabel("Name"), "rate");
    await says(page, "reference: rate");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await says(page, "- --parameter-4=${trialParameters.parameter-4}");
    await page.getByText("valid", { exact: true }).waitFor();
    assert.equal(await page.getByRole("list", { name: /What the server says/ }).count(), 0);
  }));

test("another algorithm keeps the settings that it knows, and says which it does not", () =>
  on(server, address, async (page) => {
    await ready(page);
    await algorithm(page).selectOption("tpe");
    await page.getByText("Settings of tpe").click();
    await enter(page.getByLabel("gamma"), "0.2");
    await says(page, "name: gamma");
    await enter(page.getByLabel("random_state"), "7");
    await says(page, "name: random_state");
    await algorithm(page).selectOption("random");
    await page.getByText(/random does not have these settings of tpe.*gamma: 0.2/).waitFor();
    await says(page, "algorithmName: random");
    assert.match(await text(page), /random_state/);
    assert.doesNotMatch(await text(page), /gamma/);
    await page.getByLabel("Stop trials early").selectOption("medianstop");
    await says(page, "algorithmName: medianstop");
    await enter(page.getByLabel("Budget, if any"), "2.5");
    await says(page, "maxCost: 2.5");
    await enter(page.getByLabel("Image"), "mine:2");
    await says(page, 'image: "mine:2"');
    const command = page.getByLabel("Command, one word to a line");
    await enter(command, `${await command.inputValue()}\n--epochs=5`);
    await says(page, "- --epochs=5");
    await page.getByText("valid", { exact: true }).waitFor();
  }));

test("a limit that cannot be read stays in its field, is marked, and nothing can be created", () =>
  on(server, address, async (page) => {
    await ready(page);
    const wrong = [["Budget, if any", "$5"], ["Trials", "1,000"], ["Goal, if any", "0,01"],
      ["Failures allowed", "1.5"]];
    for (const [name, written] of wrong) {
      await enter(page.locator("label", { hasText: name }).getByRole("textbox"), written);
    }
    await page.getByText("4 to mend", { exact: true }).waitFor();
    const create = page.getByRole("button", { name: "Create", exact: true });
    const check = async () => {
      for (const [name, written] of wrong) {
        const label = page.locator("label", { hasText: name });
        assert.equal(await label.getByRole("textbox").inputValue(), written);
        assert.equal(await label.getByRole("textbox").getAttribute("aria-invalid"), "true");
        await label.getByText(`must be a${/Tri|Fail/.test(name) ? "n integer" : " number"}, not ` +
          `"${written}"`).waitFor();
      }
      assert.equal(await create.isDisabled(), true);
    };
    await check();
    await page.reload();
    await page.getByText("4 to mend", { exact: true }).waitFor();
    await check();
    for (const [i, right] of ["5", "1000", "", "2"].entries()) {
      await enter(page.locator("label", { hasText: wrong[i][0] }).getByRole("textbox"), right);
    }
    await page.getByText("valid", { exact: true }).waitFor();
    assert.match(await text(page), /maxCost: 5\n/);
    assert.match(await text(page), /maxTrialCount: 1000\n/);
    assert.doesNotMatch(await text(page), /goal/);
    assert.equal(await create.isDisabled(), false);
    await page.getByRole("button", { name: "Begin again" }).click();
  }));

test("what was changed outlives a reload, until one begins again", () =>
  on(server, address, async (page) => {
    await ready(page);
    await enter(page.getByLabel("Name").first(), "kept");
    await says(page, "name: kept");
    await page.reload();
    await says(page, "name: kept");
    await page.getByRole("button", { name: "Begin again" }).click();
    await says(page, "name: my-experiment");
    await page.reload();
    await says(page, "name: my-experiment");
    assert.equal(await page.getByRole("button", { name: "Begin again" }).count(), 0);
  }));

test("a text that cannot be changed in place is written from scratch, and that can be undone", () =>
  on(server, address, async (page) => {
    await ready(page);
    const before = (await text(page)).replace("list: [adam, sgd]", "list: [adam,\n          sgd]");
    await write(page, `# mine\n${before}`);
    await enter(page.getByLabel("Trials", { exact: true }), "41");
    await page.getByText(/could not change this text in place/).waitFor();
    assert.doesNotMatch(await text(page), /# mine/);
    await page.getByRole("button", { name: "Undo" }).click();
    await says(page, "# mine");
    assert.match(await text(page), /maxTrialCount: 30/);
  }));
