// What screens read of the API, kept for a while and shared between them.
import { computed, effect } from "@preact/signals";
import {
  type InfiniteData,
  QueryClient,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/preact-query";
import { useRef } from "preact/hooks";

import { useEffect } from "preact/hooks";

import { onChanged } from "./changes";
import { api, type Options, Problem } from "./client";
import { session, tenant } from "./session";
import type { Answer, Input, PathOf } from "./types";

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 15_000,
      // A record is the object that was answered, which has a tag.
      structuralSharing: false,
      // A server that restarts is back within seconds.
      retry: (count, error) => isPassing(error) && count < 5,
      retryDelay: (count) => Math.min(500 * 2 ** count, 5_000),
      networkMode: "always",
    },
    mutations: { networkMode: "always" },
  },
});

// Nobody sees what was read for another user or tenant.
const reader = computed(() => `${session.value?.user.id ?? ""} ${tenant.value ?? ""}`);
let lastReader = reader.peek();
effect(() => {
  const next = reader.value;
  if (next === lastReader) return;
  lastReader = next;
  if (session.peek()) void queries.resetQueries();
  else queries.clear();
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

interface Callbacks<Result> {
  onSuccess?: (result: Result) => void;
  onError?: (error: Problem) => void;
}

type MutateArguments<Value, Result> = undefined extends Value
  ? [value?: Value, callbacks?: Callbacks<Result>]
  : [value: Value, callbacks?: Callbacks<Result>];

// Changes something. `refreshes` are the paths of what screens have to read again.
export function useChange<Value, Result>(
  change: (value: Value) => Promise<Result>,
  refreshes: PathOf<"get">[] = [],
) {
  const client = useQueryClient();
  // A mutation learns of its function after the page is painted: what was typed just before Enter
  // would be missing.
  const latest = useRef(change);
  latest.current = change;
  const mutation = useMutation<Result, Problem, Value>({
    mutationFn: (value) => latest.current(value),
    onSuccess: () => refresh(client, refreshes),
  });
  // The library forgets such a callback when its component is gone: after a refresh that removes
  // it, or when somebody has gone on to another screen.
  const mutate = (...[value, { onSuccess, onError } = {}]: MutateArguments<Value, Result>) =>
    void mutation.mutateAsync(value as Value)
      .then(onSuccess, (error: Problem) => onError?.(error));
  return { ...mutation, mutate };
}

export function refresh(client: QueryClient, paths: PathOf<"get">[]): Promise<unknown> {
  return Promise.all(paths.map((path) => client.invalidateQueries({ queryKey: [path] })));
}

export type { Options };

interface PageOf<Row> {
  data: Row[];
  pagination: { total: number; page: number; per_page: number };
}

type RowOf<P extends PathOf<"get">> = Answer<P, "get"> extends { data: (infer Row)[] } ? Row
  : Answer<P, "get"> extends { users: (infer Row)[] } ? Row
  : never;

// The list of users has its rows and its numbers side by side.
function toPage<Row>(answer: object): PageOf<Row> {
  if (!("users" in answer)) return answer as PageOf<Row>;
  const { users, total, page, per_page } = answer as
    & PageOf<Row>["pagination"]
    & { users: Row[] };
  return { data: users, pagination: { total, page, per_page } };
}

export interface List<Row> {
  // undefined while the first page is loading.
  rows: Row[] | undefined;
  total: number | undefined;
  error: Problem | null;
  hasMore: boolean;
  isLoadingMore: boolean;
  more: () => void;
  refetch: () => unknown;
}

const PER_PAGE = 50;

// Reads a list page by page, as it is scrolled.
export function useList<P extends PathOf<"get">>(
  path: P,
  input: Input<P, "get">,
  options: ReadOptions = {},
): List<RowOf<P>> {
  const query = useInfiniteQuery({
    queryKey: [path, "pages", input],
    queryFn: async ({ signal, pageParam }) => {
      const parts = input as { query?: object };
      const paged = { ...parts, query: { ...parts.query, page: pageParam, per_page: PER_PAGE } };
      const page = await api.get(path, paged as unknown as Input<P, "get">, { signal });
      return toPage<RowOf<P>>(page as unknown as object);
    },
    initialPageParam: 1,
    getNextPageParam: ({ pagination: { page, per_page, total } }) =>
      page * per_page < total ? page + 1 : undefined,
    ...options,
  });
  const pages = query.data?.pages;
  return {
    rows: pages?.flatMap(({ data }) => data),
    total: pages?.at(-1)?.pagination.total,
    error: query.error as Problem | null,
    hasMore: query.hasNextPage,
    isLoadingMore: query.isFetchingNextPage,
    more: () => void query.fetchNextPage(),
    refetch: () => query.refetch(),
  };
}

interface KeysetPage<Row> {
  data: Row[];
  next_cursor: string | null;
}

type KeysetPages<Row> = InfiniteData<KeysetPage<Row>, string | undefined>;

const POLL_MS = 10_000;

// Reads a list by cursors, as it is scrolled. While the page is visible, new and changed rows of its
// beginning appear by themselves. `timeOf` is what the list is ordered by, the newest first.
export function useKeyset<P extends PathOf<"get">>(
  path: P,
  input: Input<P, "get">,
  timeOf: (row: RowOf<P>) => string,
): List<RowOf<P>> {
  const client = useQueryClient();
  const key = ["keyset", path, input];
  const read = (cursor?: string, signal?: AbortSignal) => {
    const parts = input as { query?: object };
    const paged = { ...parts, query: { ...parts.query, cursor, limit: PER_PAGE } };
    return api.get(path, paged as unknown as Input<P, "get">, { signal }) as Promise<
      unknown
    > as Promise<KeysetPage<RowOf<P>>>;
  };
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ signal, pageParam }) => read(pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    // Pages that were read are not read again: only the beginning of the list changes.
    staleTime: Infinity,
  });
  useEffect(() => {
    const poll = async () => {
      if (document.hidden || !client.getQueryData(key)) return;
      const first = await read().catch(() => null);
      if (!first) return;
      client.setQueryData<KeysetPages<RowOf<P>>>(
        key,
        (pages) => pages && withFirstPage(pages, first, timeOf),
      );
    };
    void poll();
    const timer = setInterval(poll, POLL_MS);
    const forget = onChanged(path, poll);
    document.addEventListener("visibilitychange", poll);
    return () => {
      clearInterval(timer);
      forget();
      document.removeEventListener("visibilitychange", poll);
    };
  }, [JSON.stringify(key)]);
  return {
    rows: query.data?.pages.flatMap(({ data }) => data),
    total: undefined,
    error: query.error as Problem | null,
    hasMore: query.hasNextPage,
    isLoadingMore: query.isFetchingNextPage,
    more: () => void query.fetchNextPage(),
    refetch: () => client.resetQueries({ queryKey: key }),
  };
}

// The pages with another first one. Rows that are as new and not in it have left the list.
function withFirstPage<Row>(
  { pages, pageParams }: KeysetPages<Row>,
  first: KeysetPage<Row>,
  timeOf: (row: Row) => string,
): KeysetPages<Row> {
  const ids = new Set(first.data.map(idOf));
  const rows = pages.flatMap(({ data }) => data);
  const end = first.data.at(-1);
  const isGap = !rows.some((row) => ids.has(idOf(row)));
  if (first.next_cursor === null || !end || isGap) {
    return { pages: [first], pageParams: [undefined] };
  }
  const older = rows.filter((row) =>
    !ids.has(idOf(row)) && Date.parse(timeOf(row)) <= Date.parse(timeOf(end))
  );
  const rest = { data: older, next_cursor: pages.at(-1)?.next_cursor ?? null };
  return { pages: [first, rest], pageParams: [undefined, pageParams.at(-1)] };
}

function idOf(row: unknown): string {
  return (row as { id: string }).id;
}

// Changes rows that lists by cursors show, after the server has changed them.
export function patchRows<P extends PathOf<"get">>(
  path: P,
  change: (row: RowOf<P>) => RowOf<P>,
): void {
  queries.setQueriesData<KeysetPages<RowOf<P>>>(
    { queryKey: ["keyset", path] },
    (pages) =>
      pages && {
        ...pages,
        pages: pages.pages.map((page) => ({ ...page, data: page.data.map(change) })),
      },
  );
}
