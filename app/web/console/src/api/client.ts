// Requests to the API, typed by its document.
import { BASE } from "../base";
import { Problem, problemOf, toProblem } from "./problem";
import { getToken, refresh, session, tenant, waitForSignIn } from "./session";
import type { Answer, Input, PathOf } from "./types";

export interface Options {
  signal?: AbortSignal | undefined;
  // The tag of the record that the change is for: another one's change is not overwritten.
  ifMatch?: string | undefined;
  // "*": only if there is no such record yet.
  ifNoneMatch?: string;
  // For operations that are the same for everybody: no token is sent, and none is asked for.
  isPublic?: boolean;
  // Makes a repeated POST harmless.
  idempotencyKey?: string;
}

interface Parts {
  path?: Record<string, string> | undefined;
  query?: object | undefined;
  body?: unknown;
}

const tags = new WeakMap<object, string>();

// The tag of a record that a request has answered.
export function tagOf(record: object | undefined): string | undefined {
  return record && tags.get(record);
}

export const api = {
  get: <P extends PathOf<"get">>(path: P, input: Input<P, "get">, options?: Options) =>
    call<Answer<P, "get">>("GET", path, input as Parts, options),
  post: <P extends PathOf<"post">>(path: P, input: Input<P, "post">, options?: Options) =>
    call<Answer<P, "post">>("POST", path, input as Parts, options),
  put: <P extends PathOf<"put">>(path: P, input: Input<P, "put">, options?: Options) =>
    call<Answer<P, "put">>("PUT", path, input as Parts, options),
  patch: <P extends PathOf<"patch">>(path: P, input: Input<P, "patch">, options?: Options) =>
    call<Answer<P, "patch">>("PATCH", path, input as Parts, options),
  delete: <P extends PathOf<"delete">>(path: P, input: Input<P, "delete">, options?: Options) =>
    call<Answer<P, "delete">>("DELETE", path, input as Parts, options),
};

async function call<T>(method: string, path: string, parts: Parts, options: Options = {}) {
  const response = await send(method, path, parts, options);
  if (response.status === 204) return undefined as T;
  const body = await response.json() as T;
  const tag = response.headers.get("etag");
  if (tag && body && typeof body === "object") tags.set(body, tag);
  return body;
}

// Returns the response of a request that succeeded; throws a Problem otherwise. A session that has
// ended is no failure: the user signs in again, and the request is sent then.
export async function send(
  method: string,
  path: string,
  parts: Parts = {},
  options: Options = {},
): Promise<Response> {
  for (let attempt = 0;; attempt += 1) {
    const response = await attemptRequest(method, path, parts, options);
    if (response.ok) return response;
    const isFinal = response.status !== 401 || options.isPublic || !session.peek();
    if (isFinal || attempt > 1) throw await problemOf(response);
    if (attempt === 1 || !await refresh()) await waitForSignIn();
  }
}

async function identify(headers: Headers): Promise<void> {
  let token = await getToken();
  if (session.peek() && !token) {
    await waitForSignIn();
    token = await getToken();
  }
  if (token) headers.set("authorization", `Bearer ${token}`);
  const tenantId = tenant.peek();
  if (tenantId) headers.set("x-tenant-id", tenantId);
}

async function attemptRequest(method: string, path: string, parts: Parts, options: Options) {
  const headers = new Headers({ accept: "application/json, */*;q=0.5" });
  if (!options.isPublic) await identify(headers);
  if (options.ifMatch) headers.set("if-match", options.ifMatch);
  if (options.ifNoneMatch) headers.set("if-none-match", options.ifNoneMatch);
  if (options.idempotencyKey) headers.set("idempotency-key", options.idempotencyKey);
  const isForm = parts.body instanceof FormData;
  if (parts.body !== undefined && !isForm) headers.set("content-type", "application/json");
  const body = isForm ? parts.body as FormData : JSON.stringify(parts.body);
  try {
    return await fetch(addressOf(path, parts), {
      method,
      headers,
      body: body ?? null,
      signal: options.signal ?? null,
      cache: "no-cache",
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw toProblem(error);
  }
}

export function addressOf(path: string, { path: names = {}, query = {} }: Parts): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(names[name] ?? ""));
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value])
      .filter((item) => item !== undefined && item !== null && item !== "")
      .map((item) => [name, String(item)])
  );
  return `${BASE}${filled}${pairs.length ? `?${new URLSearchParams(pairs)}` : ""}`;
}

// The request as a command for a terminal. The token is a variable, so that no copy contains it.
export function toCurl(method: string, path: string, parts: Parts = {}): string {
  const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
  const lines = [
    `curl ${method === "GET" ? "" : `-X ${method} `}${
      quote(location.origin + addressOf(path, parts))
    }`,
  ];
  lines.push(`-H "Authorization: Bearer $PARLEY_TOKEN"`);
  if (tenant.peek()) lines.push(`-H ${quote(`X-Tenant-ID: ${tenant.peek()}`)}`);
  if (parts.body !== undefined && !(parts.body instanceof FormData)) {
    lines.push(`-H 'Content-Type: application/json'`, `-d ${quote(JSON.stringify(parts.body))}`);
  }
  return lines.join(" \\\n  ");
}

export { Problem };
