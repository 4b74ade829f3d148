// Evaluates functions on modules of app/web/static. Each line of the input is
// { path, source, argument }: the source of a function that gets the module and the argument.
// Answers with a line { result } or { error }.
import { createInterface } from "node:readline";

/** @type {(request: { path: string; source: string; argument: unknown }) => Promise<unknown>} */
async function evaluate({ path, source, argument }) {
  // deno-lint-ignore no-eval -- the source is a constant of a test
  const call = eval(`(${source})`);
  return call(await import(path), argument);
}

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    answer = { result: (await evaluate(JSON.parse(line))) ?? null };
  } catch (error) {
    answer = { error: error instanceof Error ? error.stack : String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
