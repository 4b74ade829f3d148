// Bundles the console into `dist`: one folder of files whose names have the hash of their content,
// each also compressed, and `manifest.json`, which says what the page loads. An argument names
// another folder than `dist`.
import { build } from "esbuild";
import { readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

const ROOT = dirname(fileURLToPath(import.meta.url));
const DIST = process.argv[2] ?? join(ROOT, "dist");
const FILES = join(DIST, "files");
const ENTRIES = { console: "src/main.tsx", docs: "src/docs/main.tsx" };
const AREA = /^src\/(?:areas\/(\w+)\/index\.tsx|texts\/en\/(\w+)\.ts)$/;
// What is loaded when a screen shows it, such as the editor of code.
const PART = /^src\/ui\/(\w+)\.tsx$/;
// A row of the screens: its address, its folder, and the texts that are loaded with it.
const SCREEN = /path: "\/(\w*)",[^}]*?import\("\.\/(\w+)"\)((?:, "\w+")+)/g;
const SCREENS = await readFile(join(ROOT, "src/areas/screens.ts"), "utf8");
const COMPRESSED = /\.(?:js|css|txt)$/;
const MAX_QUALITY = {
  params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY },
};

await rm(DIST, { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: ROOT,
  entryPoints: ENTRIES,
  outdir: FILES,
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  // Libraries for React are for Preact as well.
  alias: { react: "preact/compat", "react-dom": "preact/compat" },
  define: { "process.env.NODE_ENV": '"production"' },
  entryNames: "[name]-[hash]",
  chunkNames: "part-[hash]",
  assetNames: "[name]-[hash]",
  minify: true,
  metafile: true,
  legalComments: "none",
  logLevel: "warning",
});
const outputs = Object.entries(metafile.outputs).map(([path, output]) => ({
  name: relative(FILES, join(ROOT, path)),
  ...output,
}));
await writeFile(join(FILES, "licenses.txt"), await collectLicenses(Object.keys(metafile.inputs)));
const names = [...outputs.map(({ name }) => name), "licenses.txt"].sort();
await Promise.all(names.filter((name) => COMPRESSED.test(name)).map(compress));
await writeFile(join(DIST, "manifest.json"), JSON.stringify(describe(names), null, 2) + "\n");

// `script` and `style` are what the page names; `preloads` are what the script imports at once;
// `docs` is the same of the API reference; `areas` are the scripts that the first screen of an area
// needs beside them, in English, and `screens` are those by address; `parts` are those of what
// screens load later.
function describe(files) {
  const console = describeEntry(ENTRIES.console);
  const shell = [console.script, ...console.preloads];
  const areas = listScripts(AREA, shell);
  return {
    ...console,
    docs: describeEntry(ENTRIES.docs),
    areas,
    screens: listScreens(areas),
    parts: listScripts(PART, shell),
    files,
  };
}

function describeEntry(source) {
  const entry = outputs.find(({ entryPoint }) => entryPoint === source);
  const style = entry.cssBundle && relative(FILES, join(ROOT, entry.cssBundle));
  return { script: entry.name, style, preloads: listImports(entry).sort() };
}

function listScreens(areas) {
  const screens = {};
  for (const [, address, area, texts] of SCREENS.matchAll(SCREEN)) {
    const parts = [area, ...texts.match(/\w+/g)];
    screens[address] = [...new Set(parts.flatMap((part) => areas[part] ?? []))].sort();
  }
  return screens;
}

// The scripts of entry points by the names that the pattern finds in their paths.
function listScripts(pattern, shell) {
  const scripts = {};
  for (const output of outputs) {
    const key = pattern.exec(output.entryPoint ?? "")?.slice(1).find(Boolean);
    if (!key) continue;
    const names = [output.name, ...listImports(output)].filter((name) => !shell.includes(name));
    scripts[key] = [...new Set([...(scripts[key] ?? []), ...names])].sort();
  }
  return scripts;
}

function listImports(output, found = new Set()) {
  for (const { path, kind } of output.imports) {
    const name = relative(FILES, join(ROOT, path));
    if (kind !== "import-statement" || found.has(name)) continue;
    found.add(name);
    listImports(outputs.find((other) => other.name === name), found);
  }
  return [...found];
}

async function compress(name) {
  const path = join(FILES, name);
  const content = await readFile(path);
  await writeFile(`${path}.gz`, await promisify(gzip)(content, { level: 9 }));
  await writeFile(`${path}.br`, await promisify(brotliCompress)(content, MAX_QUALITY));
}

// The licenses of the packages that are in the bundle.
async function collectLicenses(inputs) {
  const packages = new Set(
    inputs.map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]).filter(Boolean),
  );
  const texts = [...packages].sort().map(async (name) => {
    const folder = join(ROOT, "node_modules", name);
    const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    return `${name} ${version} (${license})\n\n${await readLicense(folder)}`;
  });
  return (await Promise.all(texts)).join("\n\n");
}

async function readLicense(folder) {
  for (const name of ["LICENSE", "LICENSE.md", "license"]) {
    try {
      return await readFile(join(folder, name), "utf8");
    } catch {
      // The next name.
    }
  }
  return "";
}
