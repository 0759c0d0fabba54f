// Bundles the pages' scripts and style sheets: node build.mjs OUT [tests]
// The names of the outputs contain a hash of their content; OUT/manifest.json maps sources to outputs.
import { createHash } from "node:crypto";
import { copyFile, readFile, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const [folder, tests] = process.argv.slice(2);
const out = path.resolve(folder);
/** @type {import("esbuild").BuildOptions} */
const COMMON = {
  absWorkingDir: HERE, bundle: true, minify: true, target: "es2022", charset: "utf8", legalComments: "none",
  logLevel: "warning", outdir: out, entryNames: "[name]-[hash]", chunkNames: "part-[hash]", assetNames: "[name]-[hash]",
  loader: { ".woff2": "file", ".woff": "empty" },
};

/** @type {Record<string, { file: string, preload: string[] }>} */
const manifest = {};

/** @param {string} file */
const relative = (file) => path.relative(out, path.resolve(HERE, file));

// The chunks that an entry imports statically, transitively; without those that are imported on demand.
/** @param {import("esbuild").Metafile["outputs"]} outputs @param {string} file */
function partsOf(outputs, file, chunks = new Set()) {
  for (const { path: part, kind } of outputs[file].imports) {
    if (kind !== "import-statement" || chunks.has(part)) continue;
    chunks.add(part);
    partsOf(outputs, part, chunks);
  }
  return chunks;
}

/** @param {string[]} entryPoints @param {import("esbuild").BuildOptions} [options] */
async function bundle(entryPoints, options = {}) {
  const names = new Set(entryPoints); // chunks that are imported on demand are entry points, too
  const { metafile: { outputs } } = await esbuild.build({ ...COMMON, entryPoints, ...options, metafile: true });
  for (const [file, { entryPoint }] of Object.entries(outputs)) {
    if (!entryPoint || !names.has(entryPoint)) continue;
    manifest[path.basename(entryPoint)] = { file: relative(file), preload: [...partsOf(outputs, file)].map(relative).sort() };
  }
}

/** @param {string} name @param {string} file */
async function copy(name, file) {
  const { name: stem, ext } = path.parse(name);
  const hash = createHash("sha256").update(await readFile(file)).digest("hex").slice(0, 8).toUpperCase();
  manifest[name] = { file: `${stem}-${hash}${ext}`, preload: [] };
  await copyFile(file, path.join(out, manifest[name].file));
}

const pages = (await readdir(path.join(HERE, "pages"))).sort().map((name) => `pages/${name}`);
await bundle(pages.filter((name) => name.endsWith(".js")), { format: "esm", splitting: true });
await bundle([...pages.filter((name) => name.endsWith(".css")), "styles/shared.css", "styles/notebook.css"]);
// Not a module: it runs before the page is painted.
await bundle(["common/early.js"], { format: "iife" });
await copy("pdf.worker.mjs", path.join(HERE, "node_modules/pdfjs-dist/legacy/build/pdf.worker.min.mjs"));
if (tests) {
  await copyFile(path.join(HERE, "node_modules/axe-core/axe.min.js"), path.join(out, "axe.min.js"));
  await esbuild.build({
    ...COMMON, entryPoints: ["uploads/queue.js"], format: "iife", globalName: "queue", entryNames: "tests/uploads",
  });
}
const sorted = Object.fromEntries(Object.entries(manifest).sort(([a], [b]) => (a < b ? -1 : 1)));
await writeFile(path.join(out, "manifest.json"), `${JSON.stringify(sorted, null, 1)}\n`);
