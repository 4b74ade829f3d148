// Sends a request of "Try it", and reads the answer while it arrives.
import { toProblem } from "../api/problem";
import { getToken, refresh, session, tenant } from "../api/session";
import { addressOf } from "../api/client";
import type { Operation } from "./document";

export interface Values {
  // Of parameters, by their places and names.
  path: Record<string, string>;
  query: Record<string, string>;
  header: Record<string, string>;
  json: string;
  texts: Record<string, string>;
  files: Record<string, File[]>;
  key: string;
}

export interface Received {
  status: number;
  reason: string;
  milliseconds: number;
  headers: [string, string][];
  type: string;
  isDone: boolean;
  // Text, or the lines of a stream that have arrived.
  text: string | null;
  file: Blob | null;
}

const MAX_STREAM_CHARS = 500_000;
const MAX_FORMATTED_CHARS = 2_000_000;

// Whether the session of the console is sent. Operations for visitors take a key of their own.
export function takesSession({ schemes }: Operation): boolean {
  return schemes.includes("access_token");
}

export function takesKey({ schemes }: Operation): boolean {
  return schemes.length > 0 && !takesSession({ schemes } as Operation);
}

// Calls `show` with what has arrived so far. Throws a Problem when no answer arrives.
export async function sendRequest(
  operation: Operation,
  values: Values,
  signal: AbortSignal,
  show: (received: Received) => void,
): Promise<void> {
  const start = performance.now();
  const response = await request(operation, values, signal);
  if (response.status === 401 && session.peek() && takesSession(operation) && !await refresh()) {
    session.value = null;
  }
  const type = response.headers.get("content-type") ?? "";
  const received: Received = {
    status: response.status,
    reason: response.statusText,
    milliseconds: performance.now() - start,
    headers: [...response.headers],
    type,
    isDone: false,
    text: "",
    file: null,
  };
  if (type.startsWith("text/event-stream")) {
    show(received);
    await readStream(response, (text) => show({ ...received, text }));
    return;
  }
  const file = await response.blob();
  const milliseconds = performance.now() - start;
  const text = isText(type) || !file.size ? format(await file.text(), type) : null;
  show({ ...received, milliseconds, isDone: true, text, file });
}

async function request(operation: Operation, values: Values, signal: AbortSignal) {
  const headers = new Headers();
  for (const [name, value] of Object.entries(values.header)) if (value) headers.set(name, value);
  const token = takesSession(operation) ? await getToken() : values.key || null;
  if (token) headers.set("authorization", `Bearer ${token}`);
  const tenantId = tenant.peek();
  if (tenantId && takesSession(operation)) headers.set("x-tenant-id", tenantId);
  const body = bodyOf(operation, values);
  if (typeof body === "string") headers.set("content-type", "application/json");
  try {
    const address = addressOf(operation.path, { path: values.path, query: queryOf(values.query) });
    return await fetch(address, {
      method: operation.method,
      headers,
      body,
      signal,
      cache: "no-store",
    });
  } catch (error) {
    if (signal.aborted) throw error;
    throw toProblem(error);
  }
}

// A filter such as `filter[price][gte]=10` is typed as it is sent.
function queryOf(query: Record<string, string>): Record<string, string> {
  const { filter, ...rest } = query;
  if (!filter?.startsWith("filter[")) return query;
  return { ...rest, ...Object.fromEntries(new URLSearchParams(filter)) };
}

function bodyOf({ body }: Operation, values: Values): string | FormData | null {
  if (!body) return null;
  if (body.type !== "multipart/form-data") return values.json.trim() || null;
  const form = new FormData();
  for (const [name, text] of Object.entries(values.texts)) if (text) form.append(name, text);
  for (const [name, files] of Object.entries(values.files)) {
    for (const file of files) form.append(name, file);
  }
  return form;
}

async function readStream(response: Response, show: (text: string) => void): Promise<void> {
  if (!response.body) return;
  let text = "";
  for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
    text = (text + part).slice(-MAX_STREAM_CHARS);
    show(text);
  }
}

function isText(type: string): boolean {
  return /^text\/|json|xml|^$/.test(type);
}

function format(text: string, type: string): string {
  if (!type.includes("json") || type.includes("ndjson") || text.length > MAX_FORMATTED_CHARS) {
    return text;
  }
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
