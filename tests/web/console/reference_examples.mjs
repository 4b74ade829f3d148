// Writes the examples of every operation of an API document: `node reference_examples.mjs SOURCES
// DOCUMENT BASE`. SOURCES is the folder of the console.
import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

const [sources, document, base] = process.argv.slice(2);
const { build, transform } = createRequire(join(sources, "package.json"))("esbuild");
const { outputFiles } = await build({
  absWorkingDir: sources,
  stdin: {
    contents: ["document", "request", "snippets"]
      .map((name) => `export * from "./src/docs/${name}";`).join("\n"),
    resolveDir: sources,
  },
  bundle: true,
  format: "esm",
  write: false,
});
const module = `data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`;
const { readDocument, exampleOf, snippetOf, find } = await import(module);
const reference = readDocument(JSON.parse(await readFile(document, "utf8")));
/** @type {Record<string, any>} */
const examples = {};
for (const operation of reference.operations.values()) {
  const example = exampleOf(reference, operation);
  /** @type {(dialect: string) => string} */
  const of = (dialect) => snippetOf(dialect, example, base);
  examples[operation.id] = {
    curl: of("curl"),
    python: of("python"),
    javascript: of("javascript"),
    body: example.body,
    answer: example.answer,
  };
  // Fails where it is not valid.
  await transform(examples[operation.id].javascript, { format: "esm" });
}
const searches = ["chat stream", "agent_archived", "DELETE tenant", "create_agent", "   ", "(*"];
/** @type {(text: string) => string[]} */
const search = (text) => find(reference, text).map((/** @type {{ id: string }} */ { id }) => id);
const found = Object.fromEntries(searches.map((text) => [text, search(text)]));
process.stdout.write(JSON.stringify({ examples, found }));
