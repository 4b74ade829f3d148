// An agent as people edit it: what is live, with the draft above it.
import { useQueryClient } from "@tanstack/preact-query";

import { api, Problem, tagOf } from "../../api/client";
import { refresh, useRead } from "../../api/queries";
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
  const draft = useRead(DRAFT, { path }, { enabled: canEdit });
  const hasNoDraft = !canEdit || draft.error?.code === "draft_not_found";
  const error = agent.error ?? (hasNoDraft ? null : draft.error);
  const isReady = agent.data && (draft.data || hasNoDraft);
  return {
    agent: agent.data,
    state: isReady
      ? { agent: agent.data, draft: hasNoDraft ? null : draft.data ?? null }
      : undefined,
    error,
    refetch: () => Promise.all([agent.refetch(), canEdit && draft.refetch()]),
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
