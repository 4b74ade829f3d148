// The types of tools: what a form has to know of each. Adding a field is adding a row.
import {
  Braces,
  Database,
  Globe,
  type LucideIcon,
  Plug,
  SquareTerminal,
  Webhook,
} from "lucide-preact";

import type { Schemas } from "../../api/types";
import type { Catalog } from "../../texts";
import type { Schema } from "../../ui/schema";

export type Tool = Schemas["FullTool"];
export type ToolType = Tool["tool_type"];
export type AuthType = Tool["auth_type"];
export type Config = Record<string, unknown>;

export interface FieldSpec {
  key: keyof Catalog["tools"]["fields"];
  kind:
    | "text"
    | "number"
    | "choice"
    | "switch"
    | "code"
    | "pairs"
    | "files"
    | "endpoints"
    | "operations"
    | "lines"
    | "discovered";
  choices?: string[];
  // What counts when the field is empty.
  standard?: unknown;
  placeholder?: string;
  isOptional?: boolean;
  isShown?: (config: Config) => boolean;
}

export interface TypeSpec {
  icon: LucideIcon;
  category: Tool["category"];
  takesAuth: boolean;
  fields: FieldSpec[];
  // The config of a new tool.
  start: Config;
  // The input of a tool without an input_schema.
  input?: (config: Config) => Schema;
}

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const TIMEOUT = (standard: number): FieldSpec => ({
  key: "timeout_ms",
  kind: "number",
  standard,
});
const PACKAGES: FieldSpec = {
  key: "packages",
  kind: "lines",
  isOptional: true,
  isShown: ({ runtime }) => runtime === "python",
};
const isServer = ({ db_type }: Config) => db_type !== "sqlite";
const PYTHON = 'def main(input):\n    return {"greeting": f"Hello, {input[\'name\']}!"}\n';

export const OPERATIONS = [
  "select",
  "insert",
  "update",
  "delete",
  "merge",
  "create",
  "alter",
  "drop",
  "truncate",
];

export const TYPES: Record<ToolType, TypeSpec> = {
  rest_api: {
    icon: Globe,
    category: "custom",
    takesAuth: true,
    fields: [
      {
        key: "base_url",
        kind: "text",
        placeholder: "https://api.example.com/v1",
      },
      { key: "endpoints", kind: "endpoints" },
      TIMEOUT(30_000),
      { key: "retry_count", kind: "number", standard: 0 },
    ],
    start: { base_url: "", endpoints: { get: { method: "GET", path: "/" } } },
    input: restInput,
  },
  webhook: {
    icon: Webhook,
    category: "webhook",
    takesAuth: true,
    fields: [
      { key: "url", kind: "text", placeholder: "https://hooks.example.com/in" },
      { key: "method", kind: "choice", choices: METHODS, standard: "POST" },
      { key: "headers", kind: "pairs", isOptional: true },
      TIMEOUT(30_000),
    ],
    start: { url: "", method: "POST" },
  },
  function: {
    icon: Braces,
    category: "automation",
    takesAuth: false,
    fields: [
      { key: "runtime", kind: "choice", choices: ["python", "javascript"] },
      { key: "code", kind: "code" },
      PACKAGES,
      TIMEOUT(10_000),
    ],
    start: { runtime: "python", code: PYTHON },
  },
  script: {
    icon: SquareTerminal,
    category: "automation",
    takesAuth: false,
    fields: [
      { key: "runtime", kind: "choice", choices: ["bash", "python", "node"] },
      { key: "files", kind: "files" },
      { key: "entrypoint", kind: "text" },
      PACKAGES,
      TIMEOUT(10_000),
    ],
    start: {
      runtime: "bash",
      entrypoint: "main.sh",
      files: { "main.sh": 'echo "{}"\n' },
    },
  },
  database: {
    icon: Database,
    category: "database",
    takesAuth: true,
    fields: [
      {
        key: "db_type",
        kind: "choice",
        choices: ["postgresql", "mysql", "sqlite"],
      },
      { key: "host", kind: "text", isOptional: true, isShown: isServer },
      { key: "port", kind: "number", isOptional: true, isShown: isServer },
      { key: "database", kind: "text" },
      { key: "ssl", kind: "switch", isShown: isServer },
      { key: "allowed_operations", kind: "operations" },
      { key: "max_rows", kind: "number", standard: 100 },
      TIMEOUT(10_000),
    ],
    start: {
      db_type: "postgresql",
      host: "",
      database: "",
      allowed_operations: ["select"],
    },
    input: () => ({
      type: "object",
      properties: {
        query: { type: "string", maxLength: 10_000 },
        params: { type: "array", items: { type: "string" } },
      },
      required: ["query"],
    }),
  },
  custom: {
    icon: Plug,
    category: "custom",
    takesAuth: true,
    fields: [
      { key: "url", kind: "text", placeholder: "https://mcp.example.com/mcp" },
      { key: "tool", kind: "discovered", isOptional: true },
      TIMEOUT(30_000),
    ],
    start: { kind: "mcp", url: "", tool: "" },
  },
};

function restInput({ endpoints }: Config): Schema {
  return {
    type: "object",
    properties: {
      endpoint: { type: "string", enum: Object.keys(endpoints ?? {}) },
      params: { type: "object" },
      body: {},
      headers: { type: "object" },
    },
  };
}

// The input of a tool, as its test form shows it. null: nothing is known of it.
export function inputOf(tool: Tool): Schema | null {
  return (tool.input_schema ?? TYPES[tool.tool_type].input?.(tool.config)) as
    | Schema
    | null ?? null;
}

export interface SecretField {
  key: keyof Catalog["tools"]["authFields"];
  kind: "secret" | "text" | "choice" | "pairs";
  choices?: string[];
  isOptional?: boolean;
}

interface AuthSpec {
  fields: SecretField[];
  // The types of credentials that can take the place of secrets of the tool's own.
  credentials: string[];
}

const PLACE: SecretField[] = [
  { key: "api_key_header", kind: "text", isOptional: true },
  {
    key: "api_key_location",
    kind: "choice",
    choices: ["header", "query"],
    isOptional: true,
  },
];

export const AUTH_TYPES: Record<Exclude<AuthType, "none">, AuthSpec> = {
  api_key: {
    fields: [{ key: "api_key_value", kind: "secret" }, ...PLACE],
    credentials: ["api_key"],
  },
  bearer: {
    fields: [{ key: "token", kind: "secret" }],
    credentials: ["bearer_token"],
  },
  basic: {
    fields: [{ key: "username", kind: "text" }, {
      key: "password",
      kind: "secret",
    }],
    credentials: ["basic_auth", "database"],
  },
  oauth2: {
    fields: [
      { key: "token_url", kind: "text" },
      { key: "client_id", kind: "text" },
      { key: "client_secret", kind: "secret" },
      { key: "scope", kind: "text", isOptional: true },
    ],
    credentials: ["oauth2"],
  },
  custom: {
    fields: [{ key: "headers", kind: "pairs" }],
    credentials: ["custom"],
  },
};
export { PLACE };
