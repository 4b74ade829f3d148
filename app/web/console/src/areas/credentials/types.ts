import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import type { Tone } from "../../ui/small";
import type { Schema } from "../../ui/schema";

export type Credential = Schemas["CredentialView"];
export type CredentialType = Credential["type"];
export type TypeInfo = Schemas["TypeView"];
type State = Pick<Credential, "is_valid" | "last_tested_at">;

// Values that may be read over a shoulder.
const PUBLIC = new Set([
  "client_id",
  "database",
  "engine",
  "host",
  "host_key",
  "port",
  "scopes",
  "ssl_mode",
  "token_url",
  "use_tls",
  "username",
  // It has lines, which a masked field would join.
  "private_key",
]);
const LONG = new Set(["private_key", "host_key"]);

export function isSecret(path: string): boolean {
  return !PUBLIC.has(path.split(".")[1] ?? "");
}

// Whether the names of the secrets are free.
export function isOpen({ schema }: TypeInfo): boolean {
  return Object.keys((schema as Schema).properties ?? {}).length === 0;
}

// The limits of lengths are far above what people enter: they do not decide how a field looks.
export function formSchema({ schema }: TypeInfo): Schema {
  const { properties = {}, ...rest } = schema as Schema;
  const parts = Object.entries(properties).map(([name, { maxLength, ...part }]) => [
    name,
    LONG.has(name) ? { maxLength, ...part } : part,
  ]);
  return { ...rest, properties: Object.fromEntries(parts) };
}

export function stateOf({ is_valid, last_tested_at }: State): { tone: Tone; text: string } {
  const { states } = t().credentials;
  if (!is_valid) return { tone: "bad", text: states.invalid };
  return last_tested_at
    ? { tone: "good", text: states.valid }
    : { tone: "neutral", text: states.untested };
}
