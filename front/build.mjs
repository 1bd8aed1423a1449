// Bundles the page into the package: one script, one style sheet, one document. `make ui` runs it.
import { build } from "esbuild";
import { copyFile, mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "../src/dicoflex/explorer/static");
const licence = async (name) => (await readFile(join(here, "node_modules", name, "LICENSE"), "utf8")).trim();
const mit = await licence("preact");
const signals = await licence("@preact/signals");
const banner = `/*!\npreact:\n${mit}\n\n@preact/signals, @preact/signals-core:\n${signals}\n
htm: Copyright 2018 Google Inc. Licensed under the Apache License, Version 2.0;
a copy is at apache.org/licenses/LICENSE-2.0.\n*/`;

await mkdir(out, { recursive: true });
await build({
  absWorkingDir: here,
  entryPoints: { explorer: "src/main.js" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "inline",
  banner: { js: banner },
});
await build({ absWorkingDir: here, entryPoints: { explorer: "src/page.css" }, outdir: out, bundle: true, minify: true });
for (const name of ["index.html", "explorer.svg"]) await copyFile(join(here, "src", name), join(out, name));
