// Examples of requests in several languages.
import type { Body, Example } from "./request";

export type Dialect = "curl" | "python" | "javascript";
export const DIALECTS: Record<Dialect, string> = {
  curl: "curl",
  python: "Python",
  javascript: "JavaScript",
};

export function snippetOf(dialect: Dialect, example: Example, base: string): string {
  return { curl, python, javascript }[dialect](example, base);
}

// curl

function curl(example: Example, base: string): string {
  const { method, body, answer } = example;
  const lines = [`curl ${optionsOf(example)}${quote(base + example.path)}`];
  if (example.secret) lines.push(`-H "Authorization: Bearer $${example.secret}"`);
  for (const [name, value] of Object.entries(example.headers)) {
    lines.push(`-H ${quote(`${name}: ${value}`)}`);
  }
  if (body.kind === "json") {
    lines.push(`-H 'Content-Type: application/json'`, `-d ${quote(pretty(body.value))}`);
  }
  if (body.kind === "form") {
    for (const { name, file, text } of body.parts) {
      lines.push(`-F ${quote(file ? `${name}=@${file}` : `${name}=${text}`)}`);
    }
  }
  if (body.kind === "none" && (method === "POST" || method === "PUT") && answer !== "file") {
    // curl would send no length, which some proxies refuse.
    lines.push("-d ''");
  }
  return lines.join(" \\\n  ");
}

function optionsOf({ method, body, answer, target }: Example): string {
  const implied = body.kind === "none" ? "GET" : "POST";
  const options = [
    answer === "stream" ? "-N " : "",
    answer === "file" ? `-o ${target} ` : "",
    method === implied ? "" : `-X ${method} `,
  ];
  return options.join("");
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? "null";
}

// Python, with httpx

function python(example: Example, base: string): string {
  const files = filesOf(example.body);
  const { answer } = example;
  const imports = [
    example.secret ? "import os" : "",
    answer === "file" ? "from pathlib import Path" : "",
  ].filter(Boolean);
  const head = [...imports, ...(imports.length ? [""] : []), "import httpx", ""];
  const call = callInPython(example, base);
  const lines = answer === "stream"
    ? [
      `with ${call} as response:`,
      "    response.raise_for_status()",
      "    for line in response.iter_lines():",
      "        print(line)",
    ]
    : [`response = ${call}`, "response.raise_for_status()", ...readInPython(example)];
  const opened = files.length && answer !== "stream"
    ? [
      ...files.map(({ file }, index) =>
        `${"    ".repeat(index)}with open(${text(file ?? "")}, "rb") as ${variable(index)}:`
      ),
      ...indent([lines[0] ?? ""], files.length),
      ...lines.slice(1),
    ]
    : lines;
  return [...head, ...opened].join("\n");
}

function callInPython(example: Example, base: string): string {
  const { method, body, answer, secret } = example;
  const values = [text(base + example.path)];
  const headers = Object.entries(example.headers).map(([name, value]) =>
    `${text(name)}: ${text(value)}`
  );
  if (secret) headers.unshift(`"Authorization": f"Bearer {os.environ['${secret}']}"`);
  if (headers.length) values.push(`headers={${headers.join(", ")}}`);
  if (body.kind === "json") values.push(`json=${toPython(body.value, 1)}`);
  if (body.kind === "form") {
    const texts = body.parts.filter((part) => part.text !== undefined);
    const pairs = texts.map((part) => `${text(part.name)}: ${text(part.text ?? "")}`);
    if (pairs.length) values.push(`data={${pairs.join(", ")}}`);
    const files = filesOf(body).map(({ name }, index) => `${text(name)}: ${variable(index)}`);
    values.push(`files={${files.join(", ")}}`);
  }
  if (answer === "stream") values.push("timeout=None");
  const lines = values.map((value) => `    ${value},`).join("\n");
  if (answer === "stream") return `httpx.stream(\n    ${text(method)},\n${lines}\n)`;
  const hasOwn = body.kind === "none" || !["GET", "DELETE"].includes(method);
  const call = hasOwn ? `httpx.${method.toLowerCase()}(` : `httpx.request(\n    ${text(method)},`;
  return `${call}\n${lines}\n)`;
}

function readInPython({ answer, target }: Example): string[] {
  if (answer === "none") return [];
  if (answer === "file") return [`Path(${text(target)}).write_bytes(response.content)`];
  return [answer === "json" ? "print(response.json())" : "print(response.text)"];
}

function variable(index: number): string {
  return index ? `file_${index + 1}` : "file";
}

function indent(blocks: string[], levels: number): string[] {
  const space = "    ".repeat(levels);
  return blocks.map((block) => block.split("\n").map((line) => space + line).join("\n"));
}

// A string of JSON is one of Python and of JavaScript as well.
function text(value: string): string {
  return JSON.stringify(value);
}

function toPython(value: unknown, level: number): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const space = "    ".repeat(level + 1);
  const lines = Array.isArray(value)
    ? value.map((item) => `${space}${toPython(item, level + 1)},`)
    : Object.entries(value).map(([name, item]) =>
      `${space}${text(name)}: ${toPython(item, level + 1)},`
    );
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return lines.length
    ? `${open}\n${lines.join("\n")}\n${"    ".repeat(level)}${close}`
    : `${open}${close}`;
}

function filesOf(body: Body) {
  return body.kind === "form" ? body.parts.filter(({ file }) => file) : [];
}

// JavaScript, in Node

function javascript(example: Example, base: string): string {
  const { body, answer, method } = example;
  const files = filesOf(body);
  const lines = [
    files.length ? 'import { openAsBlob } from "node:fs";' : "",
    answer === "file" ? 'import { writeFile } from "node:fs/promises";' : "",
  ].filter(Boolean);
  if (lines.length) lines.push("");
  if (body.kind === "form") lines.push(...formInJavaScript(body.parts), "");
  const options = [`method: ${text(method)},`, ...headersInJavaScript(example)];
  if (body.kind === "json") {
    options.push(`body: JSON.stringify(${indentRest(pretty(body.value), 1)}),`);
  }
  if (body.kind === "form") options.push("body: form,");
  lines.push(
    `const response = await fetch(${text(base + example.path)}, {`,
    ...options.map((line) => `  ${line}`),
    "});",
    "if (!response.ok) throw new Error(await response.text());",
    ...readInJavaScript(example),
  );
  return lines.join("\n");
}

function formInJavaScript(parts: { name: string; file?: string; text?: string }[]): string[] {
  return [
    "const form = new FormData();",
    ...parts.map(({ name, file, text: value }) =>
      file
        ? `form.append(${text(name)}, await openAsBlob(${text(file)}), ${text(file)});`
        : `form.append(${text(name)}, ${text(value ?? "")});`
    ),
  ];
}

function headersInJavaScript({ secret, headers, body }: Example): string[] {
  const lines = Object.entries(headers).map(([name, value]) => `${text(name)}: ${text(value)},`);
  if (secret) lines.unshift(`"Authorization": \`Bearer \${process.env.${secret}}\`,`);
  if (body.kind === "json") lines.push('"Content-Type": "application/json",');
  return lines.length ? ["headers: {", ...lines.map((line) => `  ${line}`), "},"] : [];
}

function readInJavaScript({ answer, target }: Example): string[] {
  if (answer === "none") return [];
  if (answer === "stream") {
    return [
      "for await (const text of response.body.pipeThrough(new TextDecoderStream())) {",
      "  process.stdout.write(text);",
      "}",
    ];
  }
  if (answer === "file") {
    return [`await writeFile(${text(target)}, Buffer.from(await response.arrayBuffer()));`];
  }
  return [`console.log(await response.${answer === "json" ? "json" : "text"}());`];
}

function indentRest(block: string, levels: number): string {
  return block.replaceAll("\n", `\n${"  ".repeat(levels)}`);
}
