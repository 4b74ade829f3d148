// The API document, as the reference shows it.

export interface Schema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: Schema | boolean;
  propertyNames?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  example?: unknown;
  format?: string;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  maxProperties?: number;
}

export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  required?: boolean;
  description?: string;
  schema: Schema;
  style?: string;
}

export interface Media {
  schema: Schema;
  example?: unknown;
  "x-events"?: Record<string, Schema>;
}

export interface Answer {
  $ref?: string;
  description?: string;
  content?: Record<string, Media>;
  headers?: Record<string, { description?: string }>;
}

interface RawOperation {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  parameters?: Parameter[];
  requestBody?: { content: Record<string, Media>; required?: boolean };
  responses: Record<string, Answer>;
  security: Record<string, unknown>[];
  "x-permission"?: string;
  "x-error-codes": Record<string, string[]>;
}

export interface ApiDocument {
  info: { version: string; description: string };
  paths: Record<string, Record<string, RawOperation>>;
  components: {
    schemas: Record<string, Schema>;
    responses: Record<string, Answer>;
    securitySchemes: Record<string, { type: string; bearerFormat?: string }>;
  };
  tags: { name: string; description: string }[];
  "x-tagGroups": { name: string; tags: string[] }[];
  "x-error-codes": ErrorCode[];
}

export interface ErrorCode {
  code: string;
  statuses: number[];
  meaning: string;
  action: string;
}

export interface Operation {
  id: string;
  method: string;
  path: string;
  summary: string;
  description: string;
  tag: string;
  // The end of the reference's address: the group and the name of the operation.
  address: string;
  parameters: Parameter[];
  body: { type: string; media: Media; isRequired: boolean } | null;
  answers: { status: string; answer: Answer }[];
  // Names of security schemes, of which one is enough; none: anybody may call it.
  schemes: string[];
  permission: string | null;
  // By status.
  codes: Record<string, string[]>;
}

export interface Tag {
  name: string;
  about: string;
  operations: Operation[];
}

export interface Group {
  name: string;
  tags: Tag[];
}

export interface Reference {
  version: string;
  about: string;
  groups: Group[];
  operations: Map<string, Operation>;
  codes: ErrorCode[];
  document: ApiDocument;
  // Values of examples, by the names of their fields.
  samples: Map<string, unknown>;
}

const ORDER = ["get", "post", "put", "patch", "delete", "head"];

export function readDocument(document: ApiDocument): Reference {
  const about = new Map(document.tags.map(({ name, description }) => [name, description]));
  const groupOf = new Map(
    document["x-tagGroups"].flatMap(({ name, tags }) => tags.map((tag) => [tag, slug(name)])),
  );
  const all = listOperations(document, groupOf);
  const groups = document["x-tagGroups"].map(({ name, tags }) => ({
    name,
    tags: tags.map((tag) => ({
      name: tag,
      about: about.get(tag) ?? "",
      operations: all.filter((operation) => operation.tag === tag),
    })).filter(({ operations }) => operations.length),
  }));
  const shown = groups.flatMap(({ tags }) => tags.flatMap(({ operations }) => operations));
  return {
    version: document.info.version,
    // The list of all codes at its end has a page of its own.
    about: document.info.description.split("## Error codes")[0] ?? "",
    groups,
    operations: new Map(shown.map((operation) => [operation.id, operation])),
    codes: document["x-error-codes"],
    document,
    samples: collectSamples(document),
  };
}

function listOperations(document: ApiDocument, groupOf: Map<string, string>): Operation[] {
  return Object.keys(document.paths).sort().flatMap((path) => {
    const item = document.paths[path] ?? {};
    return ORDER.filter((method) => method in item).map((method) =>
      readOperation(method, path, item[method] as RawOperation, groupOf)
    );
  });
}

function readOperation(
  method: string,
  path: string,
  raw: RawOperation,
  groupOf: Map<string, string>,
): Operation {
  const tag = raw.tags[0] ?? "";
  const [type, media] = Object.entries(raw.requestBody?.content ?? {})[0] ?? [];
  return {
    id: raw.operationId,
    method: method.toUpperCase(),
    path,
    summary: raw.summary,
    description: raw.description ?? "",
    tag,
    address: `${groupOf.get(tag) ?? "other"}/${raw.operationId}`,
    parameters: raw.parameters ?? [],
    body: type && media ? { type, media, isRequired: raw.requestBody?.required ?? false } : null,
    answers: Object.entries(raw.responses).map(([status, answer]) => ({ status, answer })),
    schemes: raw.security.flatMap((scheme) => Object.keys(scheme)),
    permission: raw["x-permission"] ?? null,
    codes: raw["x-error-codes"],
  };
}

export function slug(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]+/g, "-");
}

export function nameOf(ref: string): string {
  return ref.slice(ref.lastIndexOf("/") + 1);
}

// Follows references to the schema itself.
export function resolve(document: ApiDocument, schema: Schema): Schema {
  let found = schema;
  for (let depth = 0; found.$ref && depth < 20; depth += 1) {
    found = document.components.schemas[nameOf(found.$ref)] ?? {};
  }
  return found;
}

// The schemas of which a value has one, without null.
export function branchesOf(schema: Schema): Schema[] {
  const branches = schema.anyOf ?? schema.oneOf;
  return branches ? branches.filter(({ type }) => type !== "null") : [schema];
}

export function isFile(document: ApiDocument, schema: Schema): boolean {
  const found = resolve(document, schema);
  return found.format === "binary" || Boolean(found.items && isFile(document, found.items));
}

function collectSamples(document: ApiDocument): Map<string, unknown> {
  const samples = new Map<string, unknown>();
  const visit = (value: unknown) => {
    if (Array.isArray(value)) return value.forEach(visit);
    if (!value || typeof value !== "object") return undefined;
    for (const [name, item] of Object.entries(value)) {
      if (typeof item === "string" && item && !samples.has(name)) samples.set(name, item);
      visit(item);
    }
    return undefined;
  };
  Object.values(document.components.schemas).forEach(({ example }) => visit(example));
  return samples;
}

// The operations that have all words of a search in their summary, path, name or error codes.
export function find(reference: Reference, text: string): Operation[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const found = [...reference.operations.values()].map((operation) => ({
    operation,
    rank: rankOf(operation, words),
  }));
  return found.filter(({ rank }) => rank > 0).sort((one, two) => two.rank - one.rank)
    .map(({ operation }) => operation);
}

// What is found in the summary or the name comes before what is found elsewhere.
function rankOf({ id, method, path, summary, codes, tag }: Operation, words: string[]): number {
  const named = `${summary} ${id}`.toLowerCase();
  const all = `${named} ${method} ${path} ${tag} ${Object.values(codes).join(" ")}`.toLowerCase();
  if (!words.every((word) => all.includes(word))) return 0;
  return 1 + words.filter((word) => named.includes(word)).length;
}
