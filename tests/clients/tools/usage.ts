/** What an author of a client writes; only its types are checked. */

import type { components, operations } from "./api";

type Schemas = components["schemas"];
type Json<Content> = Content extends { content: { "application/json": infer Body } } ? Body : never;
type Answer<Name extends keyof operations, Status extends keyof operations[Name]["responses"]> =
  Json<operations[Name]["responses"][Status]>;

const agent: Schemas["CreateAgent"] = {
  name: "Shop assistant",
  primary_model: "local/smollm2",
  system_prompt: "You help in a shop.",
};

// A field that may be left out is not null.
const change: Schemas["UpdateAgent"] = { name: "Assistant" };
// @ts-expect-error
change.name = null;

// @ts-expect-error: there is no such status
const listed: NonNullable<operations["list_agents"]["parameters"]["query"]>["status"] = "deleted";

async function call<Body>(path: string, init?: RequestInit): Promise<Body> {
  const response = await fetch(path, init);
  if (!response.ok) {
    const { error }: Schemas["Error"] = await response.json();
    throw new Error(`${error.code}: ${error.message}`);
  }
  return response.json();
}

async function createAgent(): Promise<string> {
  const body = JSON.stringify(agent);
  const created = await call<Answer<"create_agent", 201>>("/api/v1/agents", { method: "POST", body });
  return created.id;
}

async function listNames(): Promise<string[]> {
  const page: Answer<"list_agents", 200> = await call("/api/v1/agents");
  const total: number = page.pagination.total;
  return total ? page.data.map((item) => item.name) : [];
}

function showDelta(data: string): string {
  const event: Schemas["TextDelta"] = JSON.parse(data);
  return event.delta;
}

export { createAgent, listed, listNames, showDelta };
