// Builds the dashboard: node build.mjs [--out DIR] [--modules DIR] [--meta FILE]
// Writes index.html and assets/, whose names hold a hash of their content, each with its .br; and
// packages.json, which says of which packages they are made (for deploy/release/sbom.py); and
// report.html, all of it in one file, into which `shirabe report` puts data.
import { brotliCompressSync, constants } from "node:zlib";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import path from "node:path";

const here = path.dirname(fileURLToPath(import.meta.url));

function option(name, otherwise) {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? otherwise : process.argv[at + 1];
}

const out = path.resolve(option("out", path.join(here, "dist")));
const modules = path.resolve(option("modules", path.join(here, "node_modules")));
const esbuild = createRequire(path.join(modules, "_"))("esbuild");

const common = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  nodePaths: [modules],
  legalComments: "none",
  logLevel: "warning",
};

const settings = {
  ...common,
  entryPoints: { main: "src/main.tsx", raster: "src/raster.worker.ts" },
  outdir: path.join(out, "assets"),
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  format: "esm",
  splitting: true,
  metafile: true,
};

// The names that were written for an entry point.
function outputs(metafile, entry) {
  for (const [file, output] of Object.entries(metafile.outputs)) {
    if (output.entryPoint !== entry) continue;
    const imports = output.imports.filter((one) => one.kind === "import-statement");
    return {
      js: path.basename(file),
      css: output.cssBundle && path.basename(output.cssBundle),
      imports: imports.map((one) => path.basename(one.path)),
    };
  }
  throw new Error(`esbuild wrote nothing for ${entry}`);
}

function writeIndex(metafile) {
  const main = outputs(metafile, "src/main.tsx");
  const raster = outputs(metafile, "src/raster.worker.ts");
  const icon = readFileSync(path.join(here, "src/icon.svg"));
  const hash = createHash("sha256").update(icon).digest("hex").slice(0, 8);
  writeFileSync(path.join(out, "assets", `icon-${hash}.svg`), icon);
  // What the script imports is asked for together with it, not once it has come.
  const preload = main.imports.map((one) => `<link rel="modulepreload" href="assets/${one}" />`);
  const text = readFileSync(path.join(here, "index.html"), "utf8")
    .replaceAll("{{preload}}", preload.join("\n    "))
    .replaceAll("{{script}}", `assets/${main.js}`)
    .replaceAll("{{style}}", `assets/${main.css}`)
    .replaceAll("{{icon}}", `assets/icon-${hash}.svg`)
    .replaceAll("{{raster}}", `assets/${raster.js}`);
  writeFileSync(path.join(out, "index.html"), text);
}

// One text each of script, style and worker, which nothing within can end early.
async function inlined(entry) {
  const { outputFiles } = await esbuild.build({
    ...common, entryPoints: [entry], outdir: out, format: "iife", write: false,
  });
  const texts = {};
  for (const file of outputFiles) texts[path.extname(file.path).slice(1)] = file.text;
  for (const text of Object.values(texts)) {
    if (/<\/(script|style)|<!--/i.test(text)) throw new Error(`${entry} would end its own element`);
  }
  return texts;
}

const hashOf = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

// No script runs and no style holds but those that were built here; nothing is loaded or sent.
async function writeReport() {
  const page = await inlined("src/report.ts");
  const { js: raster } = await inlined("src/raster.worker.ts");
  const policy = [
    "default-src 'none'", `script-src ${hashOf(page.js)}`, `style-src ${hashOf(page.css)}`,
    "img-src data: blob:", "worker-src blob:", "connect-src 'none'", "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  const parts = {
    policy, raster, script: page.js, style: page.css,
    icon: readFileSync(path.join(here, "src/icon.svg")).toString("base64"),
  };
  const text = readFileSync(path.join(here, "report.html"), "utf8")
    .replace(/\{\{(\w+)\}\}/g, (mark, name) => parts[name] ?? mark);
  writeFileSync(path.join(out, "report.html"), text);
}

function compress(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) compress(file);
    if (!entry.isFile() || file.endsWith(".br")) continue;
    const bytes = readFileSync(file);
    const brotli = brotliCompressSync(bytes, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
      },
    });
    if (brotli.length < bytes.length) writeFileSync(`${file}.br`, brotli);
  }
}

// The packages that a file of theirs was taken from, with their licences, by name.
function packages(metafile) {
  const folders = new Set();
  for (const input of Object.keys(metafile.inputs)) {
    const at = input.lastIndexOf("node_modules/");
    if (at < 0) continue;
    const parts = input.slice(at).split("/");
    folders.add(parts.slice(1, parts[1].startsWith("@") ? 3 : 2).join("/"));
  }
  return [...folders].sort().map((folder) => {
    const home = path.join(modules, folder);
    const { name, version, license } = JSON.parse(readFileSync(path.join(home, "package.json")));
    const file = readdirSync(home).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${folder} has no text of its licence`);
    return { name, version, license, text: readFileSync(path.join(home, file), "utf8") };
  });
}

rmSync(out, { recursive: true, force: true });
mkdirSync(path.join(out, "assets"), { recursive: true });
const result = await esbuild.build(settings);
writeIndex(result.metafile);
compress(out);
writeFileSync(path.join(out, "packages.json"), JSON.stringify(packages(result.metafile), null, 1));
await writeReport();
if (option("meta", "")) writeFileSync(option("meta", ""), JSON.stringify(result.metafile));
