// What screens read of the API, kept for a while and shared between them.
import { QueryClient, useMutation, useQuery, useQueryClient } from "@tanstack/preact-query";

import { api, type Options, Problem } from "./client";
import type { Answer, Input, PathOf } from "./types";

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 15_000,
      // A server that restarts is back within seconds.
      retry: (count, error) => isPassing(error) && count < 5,
      retryDelay: (count) => Math.min(500 * 2 ** count, 5_000),
      networkMode: "always",
    },
    mutations: { networkMode: "always" },
  },
});

function isPassing(error: unknown): boolean {
  return error instanceof Problem && (error.isNetwork || [502, 503, 504].includes(error.status));
}

interface ReadOptions {
  enabled?: boolean | undefined;
  refetchInterval?: number | false | undefined;
  staleTime?: number | undefined;
}

// Reads an operation: `useRead("/api/v1/agents/{agent_id}", { path: { agent_id } })`.
export function useRead<P extends PathOf<"get">>(
  path: P,
  input: Input<P, "get">,
  options: ReadOptions = {},
) {
  return useQuery<Answer<P, "get">, Problem>({
    queryKey: keyOf(path, input),
    queryFn: ({ signal }) => api.get(path, input, { signal }),
    ...options,
  });
}

export function keyOf<P extends PathOf<"get">>(path: P, input: Input<P, "get">): unknown[] {
  return [path, input];
}

// Changes something. `refreshes` are the paths of what screens have to read again.
export function useChange<Value, Result>(
  change: (value: Value) => Promise<Result>,
  refreshes: PathOf<"get">[] = [],
) {
  const client = useQueryClient();
  return useMutation<Result, Problem, Value>({
    mutationFn: change,
    onSuccess: () => refresh(client, refreshes),
  });
}

export function refresh(client: QueryClient, paths: PathOf<"get">[]): Promise<unknown> {
  return Promise.all(paths.map((path) => client.invalidateQueries({ queryKey: [path] })));
}

export type { Options };
