// An agent as people edit it: what is live, with the draft above it.
import { useQuery, useQueryClient } from "@tanstack/preact-query";
import { useMemo } from "preact/hooks";

import { api, Problem, tagOf } from "../../api/client";
import { keyOf, refresh, useRead } from "../../api/queries";
import type { Schemas } from "../../api/types";

export type Agent = Schemas["FullAgent"];
export type Draft = Schemas["AgentDraft"];
export type Fields = Pick<
  Schemas["UpdateAgent"],
  "name" | "description" | "primary_model" | "system_prompt" | "temperature" | "max_tokens"
>;
export type Values = Required<Fields>;

export interface AgentState {
  agent: Agent;
  draft: Draft | null;
}

export const FIELDS = [
  "name",
  "description",
  "primary_model",
  "system_prompt",
  "temperature",
  "max_tokens",
] as const satisfies (keyof Fields)[];

const AGENT = "/api/v1/agents/{agent_id}";
const DRAFT = "/api/v1/agents/{agent_id}/draft";

// The state is undefined while it loads. Callers who may not change agents see no draft.
export function useAgentState(id: string, canEdit: boolean) {
  const path = { agent_id: id };
  const agent = useRead(AGENT, { path });
  const draft = useQuery<Draft | null, Problem>({
    queryKey: keyOf(DRAFT, { path }),
    queryFn: () => loadDraft(id),
    enabled: canEdit,
  });
  const stored = canEdit ? draft.data : null;
  return {
    agent: agent.data,
    state: useMemo(
      () => agent.data && stored !== undefined ? { agent: agent.data, draft: stored } : undefined,
      [agent.data, stored],
    ),
    error: agent.error ?? draft.error,
    refetch: () => Promise.all([agent.refetch(), draft.refetch()]),
  };
}

export function useAgentRefresh() {
  const client = useQueryClient();
  return () => refresh(client, [AGENT, DRAFT, "/api/v1/agents", `${AGENT}/versions`]);
}

export function toValues({ agent, draft }: AgentState): Values {
  const pairs = FIELDS.map((name) => [name, draft?.[name] ?? agent[name]]);
  return Object.fromEntries(pairs) as Values;
}

// The fields that a turn needs to be with other values than the live ones.
export function differences(agent: Agent, values: Values): Fields {
  return Object.fromEntries(
    FIELDS.filter((name) => values[name] !== agent[name]).map((name) => [name, values[name]]),
  );
}

export async function loadState(id: string): Promise<AgentState> {
  const path = { agent_id: id };
  const [agent, draft] = await Promise.all([api.get(AGENT, { path }), loadDraft(id)]);
  return { agent, draft };
}

async function loadDraft(id: string): Promise<Draft | null> {
  try {
    return await api.get(DRAFT, { path: { agent_id: id } });
  } catch (error) {
    if (error instanceof Problem && error.code === "draft_not_found") return null;
    throw error;
  }
}

// Stores all that differs from the live agent. Nothing that is live changes.
export async function saveDraft(
  { agent, draft }: AgentState,
  changes: Fields,
): Promise<AgentState> {
  const path = { agent_id: agent.id };
  const body = differences(agent, { ...toValues({ agent, draft }), ...changes });
  if (Object.keys(body).length === 0) {
    if (draft) await api.delete(DRAFT, { path });
    return { agent, draft: null };
  }
  const options = draft ? { ifMatch: tagOf(draft) } : { ifNoneMatch: "*" };
  return { agent, draft: await api.put(DRAFT, { path, body }, options) };
}
