// An example of a request of an operation, made of the examples of the document.
import {
  type ApiDocument,
  branchesOf,
  isFile,
  type Operation,
  type Parameter,
  type Reference,
  resolve,
  type Schema,
} from "./document";

export interface Part {
  name: string;
  // The name of a file, or a text.
  file?: string;
  text?: string;
}

export type Body =
  | { kind: "none" }
  | { kind: "json"; value: unknown }
  | { kind: "form"; parts: Part[] };

export interface Example {
  method: string;
  // With the query, below the address of the instance.
  path: string;
  headers: Record<string, string>;
  // The environment variable with the token or key, and the header that has it.
  secret: string | null;
  body: Body;
  answer: "json" | "text" | "stream" | "file" | "none";
  // Where a download is written to.
  target: string;
}

const SECRETS: Record<string, string> = {
  access_token: "PARLEY_TOKEN",
  service_key: "PARLEY_TOKEN",
  visitor_token: "VISITOR_TOKEN",
  embed_key: "EMBED_KEY",
};
const FILES: Record<string, string> = {
  avatar: "picture.png",
  audio: "question.wav",
  files: "handbook.pdf",
};
const FILES_OF_OPERATIONS: Record<string, string> = {
  import_file: "rows.csv",
  create_transcription: "question.wav",
};
const ENDINGS: Record<string, string> = {
  "audio/mpeg": "answer.mp3",
  "image/png": "picture.png",
  "text/csv": "rows.csv",
  "application/x-ndjson": "conversations.jsonl",
  "application/octet-stream": "download",
};
const FORMATS: Record<string, string> = {
  "date-time": "2026-01-01T12:00:00Z",
  date: "2026-01-01",
  time: "12:00:00",
  email: "ada@example.com",
  uri: "https://example.com",
  uuid: "123e4567-e89b-12d3-a456-426614174000",
};
// Deeper schemas refer to themselves.
const MAX_DEPTH = 6;

export function exampleOf(reference: Reference, operation: Operation): Example {
  const required = operation.parameters.filter((parameter) => parameter.required);
  const of = (place: string) => required.filter((parameter) => parameter.in === place);
  const value = (parameter: Parameter) => sampleOf(reference, operation, parameter);
  const query = of("query").map((parameter) => [parameter.name, value(parameter)]);
  const headers = of("header").map((parameter) => [parameter.name, value(parameter)]);
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name) => {
    const parameter = operation.parameters.find((other) =>
      other.in === "path" && other.name === name
    );
    return encodeURIComponent(parameter ? value(parameter) : name);
  });
  const types = listTypes(operation);
  return {
    method: operation.method,
    path: query.length ? `${path}?${new URLSearchParams(query)}` : path,
    headers: Object.fromEntries(headers),
    secret: operation.schemes.map((name) => SECRETS[name]).find(Boolean) ?? null,
    body: bodyOf(reference, operation),
    answer: answerOf(types),
    target: ENDINGS[types[0] ?? ""] ?? "download",
  };
}

// The media types of the answer to a request that succeeds.
export function listTypes(operation: Operation): string[] {
  return operation.answers.filter(({ status }) => status < "300")
    .flatMap(({ answer }) => Object.keys(answer.content ?? {}));
}

function answerOf(types: string[]): Example["answer"] {
  if (!types.length) return "none";
  if (types.includes("application/json")) return "json";
  if (types.includes("text/event-stream")) return "stream";
  return types[0] === "text/plain" ? "text" : "file";
}

function bodyOf(reference: Reference, operation: Operation): Body {
  const { body } = operation;
  if (!body) return { kind: "none" };
  const { document } = reference;
  if (body.type !== "multipart/form-data") {
    return { kind: "json", value: body.media.example ?? sample(document, body.media.schema) };
  }
  const schema = resolve(document, body.media.schema);
  const names = Object.keys(schema.properties ?? {}).filter((name) =>
    schema.required?.includes(name) || isFile(document, schema.properties?.[name] ?? {})
  );
  // Texts come first: a server that reads the file while it arrives needs them before it.
  const parts = names.map((name) => partOf(reference, operation, name, schema));
  return { kind: "form", parts: parts.sort((one) => (one.file ? 1 : -1)) };
}

function partOf(reference: Reference, operation: Operation, name: string, owner: Schema): Part {
  const schema = owner.properties?.[name] ?? {};
  if (isFile(reference.document, schema)) {
    return { name, file: FILES_OF_OPERATIONS[operation.id] ?? FILES[name] ?? "handbook.pdf" };
  }
  return { name, text: textOf(reference, name, schema) };
}

export function sampleOf(
  reference: Reference,
  operation: Operation,
  { name, schema }: Parameter,
): string {
  // `id` of the record that the path is about: `/agents/{id}`.
  const before = /\/(\w+?)s?\/\{\w+\}$/.exec(operation.path)?.[1];
  const known = reference.samples.get(name) ??
    (name === "id" && before ? reference.samples.get(`${before}_id`) : undefined);
  return schema.type === "string" && typeof known === "string" && !schema.enum
    ? known
    : textOf(reference, name, schema);
}

function textOf(reference: Reference, name: string, schema: Schema): string {
  const known = reference.samples.get(name);
  const found = resolve(reference.document, branchesOf(schema)[0] ?? {});
  if (typeof known === "string" && found.type === "string" && !found.enum && !found.format) {
    return known;
  }
  const value = sample(reference.document, schema);
  return typeof value === "string" && value ? value : typeof value === "object" ? name : String(
    value,
  );
}

// A value that fits the schema: its example, or one made of its required fields.
export function sample(document: ApiDocument, schema: Schema, depth = 0): unknown {
  if (schema.example !== undefined) return schema.example;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  if (schema.default !== undefined) return schema.default;
  if (schema.$ref) return sample(document, resolve(document, schema), depth);
  const branches = branchesOf(schema);
  if (branches[0] !== schema) return branches[0] ? sample(document, branches[0], depth) : null;
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === "object") return sampleObject(document, schema, depth);
  if (type === "array") {
    return schema.minItems && schema.items && depth < MAX_DEPTH
      ? [sample(document, schema.items, depth + 1)]
      : [];
  }
  if (type === "integer" || type === "number") return schema.minimum ?? 1;
  if (type === "boolean") return true;
  return type === "string" ? FORMATS[schema.format ?? ""] ?? "…" : null;
}

function sampleObject(document: ApiDocument, schema: Schema, depth: number): unknown {
  if (depth >= MAX_DEPTH) return {};
  const pairs = (schema.required ?? []).map((name) => [
    name,
    sample(document, schema.properties?.[name] ?? {}, depth + 1),
  ]);
  return Object.fromEntries(pairs);
}
