// What a form has to know of a JSON Schema.
export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  format?: string;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: unknown;
  items?: unknown;
  anyOf?: Schema[];
  oneOf?: Schema[];
  $ref?: string;
  [keyword: string]: unknown;
}

export type Kind =
  | "choice"
  | "text"
  | "number"
  | "switch"
  | "object"
  | "list"
  | "json";
export type Fields = Record<string, unknown>;

const DEEPEST = 6;
const KINDS: Record<string, Kind> = {
  string: "text",
  number: "number",
  integer: "number",
  boolean: "switch",
  object: "object",
  array: "list",
};

export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// A name of a property may be one that every object has, such as "constructor".
export function own(object: unknown, name: string): unknown {
  return isObject(object) && Object.hasOwn(object, name) ? object[name] : undefined;
}

// Follows references within the schema, and takes "this or null" as this.
export function resolve(schema: unknown, root: Schema, depth = 0): Schema {
  if (!isObject(schema) || depth > 20) return {};
  if (typeof schema.$ref === "string") {
    const { $ref, ...rest } = schema as Schema;
    return { ...resolve(find(root, $ref as string), root, depth + 1), ...rest };
  }
  const choices = (schema.anyOf ?? schema.oneOf) as unknown;
  if (Array.isArray(choices)) {
    const others = choices.filter((choice) => own(choice, "type") !== "null");
    const { anyOf: _, oneOf: __, ...rest } = schema as Schema;
    if (others.length === 1) {
      return { ...resolve(others[0], root, depth + 1), ...rest };
    }
  }
  return schema as Schema;
}

function find(root: Schema, reference: string): unknown {
  if (!reference.startsWith("#")) return {};
  const parts = decodeURIComponent(reference).split("/").slice(1);
  return parts.reduce<unknown>(
    (value, part) => own(value, part.replaceAll("~1", "/").replaceAll("~0", "~")),
    root,
  );
}

export function isRequired({ required }: Schema, name: string): boolean {
  return Array.isArray(required) && required.includes(name);
}

export function kindOf(schema: Schema, depth: number): Kind {
  if (Array.isArray(schema.enum) && schema.enum.length) return "choice";
  const types = (Array.isArray(schema.type) ? schema.type : [schema.type])
    .filter((type) => type !== "null");
  const kind = types.length === 1 ? KINDS[types[0] ?? ""] ?? "json" : "json";
  if (kind === "object" && !Object.keys(schema.properties ?? {}).length) {
    return "json";
  }
  if (kind === "list" && !isObject(schema.items)) return "json";
  return depth > DEEPEST && (kind === "object" || kind === "list") ? "json" : kind;
}

// The value with which a form begins: what the schema gives as defaults.
export function startOf(schema: unknown, root: Schema, depth = 0): unknown {
  const { default: initial, const: only, properties, ...rest } = resolve(
    schema,
    root,
  );
  if (initial !== undefined) return initial;
  if (only !== undefined) return only;
  if (kindOf({ properties, ...rest } as Schema, depth) !== "object") {
    return undefined;
  }
  const pairs = Object.entries(properties ?? {})
    .map(([name, part]) => [name, startOf(part, root, depth + 1)])
    .filter(([, value]) => value !== undefined);
  return pairs.length || depth === 0 ? Object.fromEntries(pairs) : undefined;
}
