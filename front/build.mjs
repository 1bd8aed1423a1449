// Bundles the page into the package: what shows plans, what opens later, a style sheet, a document, and the words of
// further languages. `make ui` runs it.
import { build } from "esbuild";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { minify } from "terser";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "../src/dicoflex/explorer/static");
const LANGUAGES = ["de"];
const LIBRARIES = ["preact", "@preact/signals", "@preact/signals-core"];

const read = (...path) => readFile(join(here, ...path), "utf8");
const write = (name, text) => writeFile(join(out, name), text);

await mkdir(out, { recursive: true });
const { outputFiles } = await build({
  absWorkingDir: here,
  entryPoints: { explorer: "src/main.js" },
  outdir: out,
  bundle: true,
  splitting: true,
  chunkNames: "[name]",
  loader: { ".js": "jsx" },
  jsxFactory: "h",
  jsxFragment: "Fragment",
  inject: ["src/view.js"],
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  write: false,
});
// The entry only passes on what the chunk holds, so the chunk takes its name.
const [ENTRY, CHUNK] = ["explorer.js", "chunk.js"];
for (const file of outputFiles.filter((one) => basename(one.path) !== ENTRY)) {
  const { code } = await minify(file.text.replaceAll(`./${CHUNK}`, `./${ENTRY}`), { module: true, ecma: 2020, compress: { passes: 3 } });
  await write(basename(file.path).replace(CHUNK, ENTRY), `/* licences of others: licences.txt */\n${code}\n`);
}
await build({ absWorkingDir: here, entryPoints: { widget: "src/widget.js" }, outdir: out, bundle: true, minify: true, format: "esm", target: "es2022", charset: "utf8" });
await build({ absWorkingDir: here, entryPoints: { explorer: "src/page.css" }, outdir: out, bundle: true, minify: true });
for (const name of ["index.html", "explorer.svg"]) await copyFile(join(here, "src", name), join(out, name));
for (const name of LANGUAGES) await write(`${name}.json`, JSON.stringify(JSON.parse(await read("texts", `${name}.json`))));
const licences = await Promise.all(LIBRARIES.map(async (name) => `${name}:\n\n${(await read("node_modules", name, "LICENSE")).trim()}\n`));
await write("licences.txt", `Parts of explorer.js and later.js are:\n\n${licences.join("\n\n")}`);
