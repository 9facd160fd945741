// What a browser loads: the list of experiments with everything that pages share, and each other
// page beyond that. node sizes.mjs METAFILE DIST
import fs from "node:fs";
import path from "node:path";

const [, , metafile, dist] = process.argv;
const { outputs } = JSON.parse(fs.readFileSync(metafile, "utf8"));
const FIRST = 60_000;
const MORE = 25_000;

function size(file) {
  const at = path.join(dist, "assets", path.basename(file));
  return fs.existsSync(`${at}.br`) ? fs.statSync(`${at}.br`).size : fs.statSync(at).size;
}

// A file and all that it imports at once.
function withImports(file, found = new Set()) {
  if (found.has(file)) return found;
  found.add(file);
  if (outputs[file].cssBundle) found.add(outputs[file].cssBundle);
  for (const one of outputs[file].imports) {
    if (one.kind === "import-statement") withImports(one.path, found);
  }
  return found;
}

const sum = (files) => [...files].reduce((total, file) => total + size(file), 0);
const entry = (name) =>
  Object.keys(outputs).find((file) => outputs[file].entryPoint === name) ?? process.exit(2);

const shared = withImports(entry("src/main.tsx"));
// Lines and points are drawn on most pages: what draws them is loaded once.
const chart = Object.keys(outputs).filter((file) =>
  Object.keys(outputs[file].inputs ?? {}).some((input) => input.includes("uPlot.esm")));
for (const file of chart) for (const one of withImports(file)) shared.add(one);
let bad = false;
const line = (name, bytes, most) => {
  bad ||= bytes > most;
  console.log(`${(bytes / 1000).toFixed(1).padStart(7)} kB of ${most / 1000}  ${name}`);
};
line("the list, with all that is shared", sum(shared), FIRST);
for (const file of Object.keys(outputs)) {
  const name = outputs[file].entryPoint;
  if (!name || name === "src/main.tsx" || name.endsWith(".worker.ts")) continue;
  const more = [...withImports(file)].filter((one) => !shared.has(one));
  line(name, sum(more), MORE);
}
process.exit(bad ? 1 : 0);
