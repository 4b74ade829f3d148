// The records that pickers offer: how each kind is searched, and how one of them is named.
import { useQuery } from "@tanstack/preact-query";

import { api, Problem } from "../api/client";
import type { Query, Schemas } from "../api/types";

export type Kind = "agent" | "tool" | "user" | "credential" | "tenant";

export interface Wanted {
  search: string;
  // Only credentials have types.
  types?: string[] | undefined;
  // The ids of records that are not offered.
  without?: string[] | undefined;
}

interface Row {
  id: string;
  name: string;
}

interface Found {
  rows: Row[];
  hasMore: boolean;
}

interface Source {
  path: string;
  list: (query: { search: string; per_page: number }, types: string[]) => Promise<Found>;
  name: (id: string) => Promise<string>;
}

const PER_PAGE = 20;
// Where the server does not leave out what is not offered.
const MANY = 100;

interface Page {
  data: Row[];
  pagination: { total: number };
}

function found({ data, pagination: { total } }: Page): Found {
  return { rows: data.map(({ id, name }) => ({ id, name })), hasMore: total > data.length };
}

function nameOfUser(user: Schemas["UserView"]): string {
  return `${user.first_name} ${user.last_name}`.trim() || user.email;
}

const SOURCES: Record<Kind, Source> = {
  agent: {
    path: "/api/v1/agents",
    list: async (query) =>
      found(await api.get("/api/v1/agents", { query: { ...query, sort: "name" } })),
    name: async (id) =>
      (await api.get("/api/v1/agents/{agent_id}", { path: { agent_id: id } })).name,
  },
  tool: {
    path: "/v1/tools",
    list: async (query) => found(await api.get("/v1/tools", { query: { ...query, sort: "name" } })),
    name: async (id) => (await api.get("/v1/tools/{tool_id}", { path: { tool_id: id } })).data.name,
  },
  credential: {
    path: "/v1/credentials",
    list: async (query, types) => {
      const [type] = types.length === 1 ? types : [];
      const page = await api.get("/v1/credentials", {
        query: { ...query, sort: "name", type: type as Query<"/v1/credentials">["type"] },
      });
      const data = page.data.filter((row) => !types.length || types.includes(row.type));
      return { ...found({ ...page, data }), hasMore: page.pagination.total > page.data.length };
    },
    name: async (id) =>
      (await api.get("/v1/credentials/{credential_id}", { path: { credential_id: id } })).name,
  },
  user: {
    path: "/users",
    list: async (query) => {
      const { users, total } = await api.get("/users", { query });
      const data = users.map((user) => ({ id: user.id, name: nameOfUser(user) }));
      return found({ data, pagination: { total } });
    },
    name: async (id) => nameOfUser(await api.get("/users/{user_id}", { path: { user_id: id } })),
  },
  tenant: {
    path: "/api/v1/tenants",
    list: async (query) =>
      found(await api.get("/api/v1/tenants", { query: { ...query, sort: "name" } })),
    name: async (id) =>
      (await api.get("/api/v1/tenants/{tenant_id}", { path: { tenant_id: id } })).name,
  },
};

export function useRecords(
  kind: Kind,
  { search, types = [], without = [] }: Wanted,
  enabled: boolean,
) {
  const { path, list } = SOURCES[kind];
  const per_page = types.length > 1 || without.length ? MANY : PER_PAGE;
  const query = useQuery<Found, Problem>({
    queryKey: [path, "picker", search, per_page, types],
    queryFn: () => list({ search, per_page }, types),
    placeholderData: (before) => before,
    enabled,
  });
  return {
    rows: query.data?.rows.filter(({ id }) => !without.includes(id)),
    hasMore: query.data?.hasMore ?? false,
    isStale: query.isPlaceholderData,
    error: query.error,
  };
}

// The id while the name loads, and of a record that is gone.
export function useRecordName(kind: Kind, id: string): string {
  const { path, name } = SOURCES[kind];
  const query = useQuery<string, Problem>({
    queryKey: [path, "name", id],
    queryFn: () => name(id),
    enabled: Boolean(id),
    staleTime: 60_000,
  });
  return query.data ?? id;
}
