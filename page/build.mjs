// Builds the page into the Python package: one script, one style sheet, the icon and index.html.
// `sources.sha256` says which sources a build is of; tests/unit/service/test_page_build.py checks it.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "..", "src", "quadweir", "service", "page");
const SOURCES = ["build.mjs", "index.html", "icon.svg", "package.json", "package-lock.json", "tsconfig.json", "src"];

function filesOf(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path).flatMap((name) => filesOf(join(path, name)));
}

function digestOfSources() {
  const lines = SOURCES.flatMap((each) => filesOf(join(here, each)))
    .map((file) => {
      const hash = createHash("sha256").update(readFileSync(file)).digest("hex");
      return `${relative(here, file).replaceAll("\\", "/")} ${hash}\n`;
    })
    .sort();
  return createHash("sha256").update(lines.join("")).digest("hex");
}

const result = await build({
  absWorkingDir: here,
  entryPoints: { page: "src/main.tsx", style: "src/styles/index.css" },
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  charset: "utf8",
  legalComments: "none",
  entryNames: "[name]-[hash]",
  outdir: join(out, "assets"),
  metafile: true,
  write: false,
});

rmSync(out, { recursive: true, force: true });
mkdirSync(join(out, "assets"), { recursive: true });
const names = {};
for (const file of result.outputFiles) {
  const name = basename(file.path);
  names[name.endsWith(".css") ? "style" : "script"] = `assets/${name}`;
  writeFileSync(join(out, "assets", name), file.contents);
}
const icon = readFileSync(join(here, "icon.svg"));
const iconName = `assets/icon-${createHash("sha256").update(icon).digest("hex").slice(0, 8)}.svg`;
writeFileSync(join(out, iconName), icon);
const index = readFileSync(join(here, "index.html"), "utf8")
  .replace("{{script}}", names.script)
  .replace("{{style}}", names.style)
  .replace("{{icon}}", iconName);
writeFileSync(join(out, "index.html"), index);
writeFileSync(join(out, "sources.sha256"), `${digestOfSources()}\n`);

const bytes = filesOf(out).reduce((sum, file) => sum + statSync(file).size, 0);
console.log(`the page: ${(bytes / 1024).toFixed(0)} KiB in ${out}`);
