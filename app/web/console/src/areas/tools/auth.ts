// How a tool authenticates, while it is edited. It is in memory alone: no secret is ever kept in this
// browser.
import { useState } from "preact/hooks";

import { AUTH_TYPES, type AuthType, type Tool } from "./types";

interface AuthEdit {
  type: AuthType;
  source: "own" | "credential";
  values: Record<string, unknown>;
}

export interface Auth extends AuthEdit {
  isTouched: boolean;
  // Secrets of the tool's own are stored and not replaced.
  isStored: boolean;
  set: (changes: Partial<AuthEdit>) => void;
  reset: () => void;
  // What a request says of it.
  body: () => object;
}

type Stored = Pick<Tool, "auth_type" | "auth_source" | "credential_id">;

export function useAuth(tool: Stored): Auth {
  const [edit, setEdit] = useState<AuthEdit | null>(null);
  const stored: AuthEdit = {
    type: tool.auth_type,
    source: tool.auth_source === "own" ? "own" : "credential",
    values: tool.credential_id ? { credential_id: tool.credential_id } : {},
  };
  const current = edit ?? stored;
  return {
    ...current,
    isTouched: edit !== null,
    isStored: edit === null && tool.auth_source === "own",
    set: (changes) => setEdit({ ...current, ...changes }),
    reset: () => setEdit(null),
    body: () => (edit ? bodyOf(edit) : {}),
  };
}

function bodyOf({ type, source, values }: AuthEdit): object {
  if (type === "none") return { auth_type: type, auth_config: null };
  const known = source === "own" ? AUTH_TYPES[type].fields.map(({ key }) => key as string) : [
    "credential_id",
    ...(type === "api_key" ? ["api_key_header", "api_key_location"] : []),
  ];
  const pairs = known.map((key) => [key, values[key]] as const)
    .filter(([, value]) => value !== undefined && value !== "");
  return { auth_type: type, auth_config: Object.fromEntries(pairs) };
}
