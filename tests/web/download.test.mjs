// Pictures as files: what is in them, and that it is where it stands on the page.
import assert from "node:assert/strict";
import fs from "node:fs";
import { before, test } from "node:test";
import { newHome, on, serve } from "./harness.mjs";

let server;
before(async () => {
  server = await serve({ home: newHome(true) });
});

const spot = "#/e/default/digits-spot";

async function download(page, panel, kind) {
  await page.getByRole("button", { name: `${panel}: more` }).click();
  const coming = page.waitForEvent("download");
  await page.getByRole("menuitem", { name: `Download ${kind}` }).click();
  const got = await coming;
  return { name: got.suggestedFilename(), bytes: fs.readFileSync(await got.path()) };
}

// How many pixels of a part of a PNG are not of its background: [x, y, width, height] on the page.
function inked(page, bytes, box) {
  return page.evaluate(async ([base64, [x, y, width, height]]) => {
    const image = new Image();
    image.src = `data:image/png;base64,${base64}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(2 * x, 2 * y, 2 * width, 2 * height);
    const ground = context.getImageData(1, 1, 1, 1).data;
    let found = 0;
    for (let i = 0; i < data.length; i += 4) {
      if ([0, 1, 2].some((j) => Math.abs(data[i + j] - ground[j]) > 60)) ++found;
    }
    return { width: image.width, height: image.height, found };
  }, [bytes.toString("base64"), box]);
}

// Where an element stands in its panel.
async function within(page, panel, locator) {
  const [outer, inner] = await Promise.all([
    page.getByRole("region", { name: panel, exact: true }).boundingBox(), locator.boundingBox(),
  ]);
  return [inner.x - outer.x, inner.y - outer.y, inner.width, inner.height];
}

for (const colorScheme of ["light", "dark"]) {
  test(`a PNG of parallel coordinates has title, names, ticks and legend, ${colorScheme}`, () =>
    on(server, `${spot}/analysis`, async (page) => {
      const panel = "Parallel coordinates";
      await page.waitForFunction(() =>
        Number(document.querySelector(".parallel canvas")?.dataset.took) > 0);
      const { name, bytes } = await download(page, panel, "PNG");
      assert.equal(name, "parallel-coordinates.png");
      const outer = await page.getByRole("region", { name: panel, exact: true }).boundingBox();
      const places = {
        title: page.getByRole("heading", { name: panel }),
        "name of an axis": page.locator(".axis-name b").nth(1),
        tick: page.locator(".overlay g text").first(),
        legend: page.locator(".parallel + .legend .ramp"),
      };
      for (const [what, locator] of Object.entries(places)) {
        const box = await within(page, panel, locator);
        const { width, height, found } = await inked(page, bytes, box);
        assert.ok(found > 20, `${what}: ${found} pixels`);
        assert.equal(width, 2 * Math.ceil(outer.width));
        assert.ok(Math.abs(height - 2 * outer.height) < 40, `${height} of ${outer.height}`);
      }
    }, { colorScheme }));
}

test("a picture as SVG has its texts as text, its lines as an image, and no style or script", () =>
  on(server, `${spot}/analysis`, async (page) => {
    await page.waitForFunction(() =>
      Number(document.querySelector(".parallel canvas")?.dataset.took) > 0);
    const { name, bytes } = await download(page, "Parallel coordinates", "SVG");
    assert.equal(name, "parallel-coordinates.svg");
    const text = bytes.toString();
    for (const said of ["Parallel coordinates", "batch-size", "logistic", "worst"]) {
      assert.match(text, new RegExp(`<text[^>]*>${said}`));
    }
    assert.match(text, /<image [^>]*href="data:image\/png;base64,/);
    assert.match(text, /<title>Parallel coordinates · digits-spot/);
    assert.doesNotMatch(text, /style=|class=|<script|foreignObject|color-mix|var\(/);
  }));

test("bars and small pictures can be saved as well; a table is not a picture", () =>
  on(server, `${spot}/analysis`, async (page) => {
    const panel = "validation-accuracy over each parameter";
    await page.locator(".slice canvas").nth(4).waitFor();
    const slices = (await download(page, panel, "SVG")).bytes.toString();
    assert.equal(slices.match(/<image /g).length, 5);
    assert.match(slices, /<text[^>]*>activation</);
    await page.getByRole("table", { name: "Importance of the parameters" }).waitFor();
    const bars = (await download(page, "Which parameters matter", "SVG")).bytes.toString();
    assert.match(bars, /<text[^>]*>batch-size</);
    assert.ok(bars.match(/<rect /g).length > 10);
    await page.getByRole("button", { name: `${panel}: more` }).click();
    await page.getByRole("menuitem", { name: "As table" }).click();
    await page.getByRole("button", { name: `${panel}: more` }).click();
    await page.getByRole("menuitem", { name: "Download CSV" }).waitFor();
    assert.equal(await page.getByRole("menuitem", { name: "Download PNG" }).count(), 0);
  }));
