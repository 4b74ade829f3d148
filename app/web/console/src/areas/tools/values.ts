// What the editor of a tool edits. The schemas are texts, so that what is not JSON yet is kept too.
import type { Body, Schemas } from "../../api/types";
import { type Config, type Tool, type ToolType, TYPES } from "./types";

export type Stored = Schemas["FullToolData"];

export interface Values {
  name: string;
  slug: string;
  description: string;
  category: Tool["category"];
  is_enabled: boolean;
  config: Config;
  input_schema: unknown;
  output_schema: unknown;
}

export function toValues({ data }: Stored): Values {
  const {
    name,
    slug,
    description,
    category,
    is_enabled,
    config,
    input_schema,
    output_schema,
  } = data;
  return {
    name,
    slug,
    description,
    category,
    is_enabled,
    config,
    input_schema,
    output_schema,
  };
}

// Keys that are gone are removed by null, because the server joins the keys of both.
export function configChanges(before: Config, after: Config): Config {
  const gone = Object.keys(before).filter((key) => !Object.hasOwn(after, key));
  const changed = Object.entries(after).filter(([key, value]) =>
    JSON.stringify(value) !== JSON.stringify(before[key])
  );
  return Object.fromEntries([
    ...changed,
    ...gone.map((key) => [key, null] as const),
  ]);
}

// A tool that is not stored yet.
export function blank(type: ToolType): Stored {
  const { category, start } = TYPES[type];
  const now = new Date(0).toISOString();
  return {
    data: {
      id: "",
      name: "",
      slug: "",
      description: "",
      category,
      tool_type: type,
      auth_type: "none",
      auth_source: "none",
      credential_id: null,
      is_enabled: true,
      usage_count: 0,
      last_used_at: null,
      created_at: now,
      updated_at: now,
      input_schema: null,
      output_schema: null,
      config: start,
      usage_stats: {
        total_executions: 0,
        successful: 0,
        failed: 0,
        success_rate: 0,
        avg_execution_time_ms: 0,
      },
    },
  };
}

export function creationOf(
  type: ToolType,
  values: Values,
  auth: object,
): Body<"/v1/tools", "post"> {
  const { slug, ...others } = values;
  return {
    ...others,
    ...(slug ? { slug } : {}),
    tool_type: type,
    auth_type: "none",
    ...auth,
  } as Body<"/v1/tools", "post">;
}
