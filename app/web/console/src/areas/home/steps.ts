// What makes an instance useful, and whether it is done. Only what the user may do is asked for.
import { useRead } from "../../api/queries";
import { may, session, tenant } from "../../api/session";
import { t } from "../../texts";

export interface Step {
  key: keyof ReturnType<typeof t>["home"]["steps"];
  isDone: boolean;
  to: string;
}

export interface Steps {
  // undefined while they load.
  data: Step[] | undefined;
  error: unknown;
  refetch: () => unknown;
}

const LOCAL = "local";

export function useSteps(isEnabled: boolean): Steps {
  const canKeys = may("models:read") && may("models:write");
  const canBuild = may("agents:read") && may("agents:write");
  const canInvite = may("admin:users");
  const page = { query: { per_page: 1 } };
  const models = useRead("/api/v1/models", { query: {} }, { enabled: isEnabled && canKeys });
  const agents = useRead("/api/v1/agents", page, { enabled: isEnabled && canBuild });
  const limits = useRead("/api/v1/usage/limits", {}, {
    enabled: isEnabled && canBuild && may("usage:read"),
  });
  const keys = useRead("/api/v1/embed/api-keys", page, { enabled: isEnabled && canBuild });
  const users = useRead("/users", page, { enabled: isEnabled && canInvite });
  const agent = agents.data?.data[0];
  const place = agent ? `/agents/${agent.id}` : "/agents";
  const steps: (Step & { query: Query; isFor: boolean })[] = [
    {
      key: "model",
      isFor: canKeys,
      query: models,
      isDone: Boolean(models.data?.data.some(({ provider }) => provider !== LOCAL)),
      to: "/settings?new=key",
    },
    {
      key: "agent",
      isFor: canBuild,
      query: agents,
      isDone: Boolean(agent),
      to: "/agents?new=1",
    },
    {
      key: "documents",
      isFor: canBuild && may("usage:read"),
      query: limits,
      isDone: Boolean(limits.data?.storage.by_kind.knowledge),
      to: "/knowledge",
    },
    {
      key: "embed",
      isFor: canBuild,
      query: keys,
      isDone: Boolean(keys.data?.data.length),
      to: agent ? `${place}?tab=embedding` : place,
    },
    {
      key: "invite",
      isFor: canInvite,
      query: users,
      isDone: (users.data?.total ?? 0) > 1,
      to: "/people?new=1",
    },
  ];
  const own = steps.filter(({ isFor }) => isFor);
  const failed = own.find(({ query }) => query.error && !query.data);
  return {
    data: own.every(({ query }) => query.data) ? own : undefined,
    error: failed?.query.error,
    refetch: () => Promise.all(own.map(({ query }) => query.refetch())),
  };
}

interface Query {
  data: unknown;
  error: unknown;
  refetch: () => unknown;
}

// Under which this browser keeps that a user has done or hidden the steps.
export function keyOfSteps(): string {
  const user = session.value?.user;
  return `parley-steps-${user?.id ?? ""}-${tenant.value ?? user?.tenant_id ?? ""}`;
}
