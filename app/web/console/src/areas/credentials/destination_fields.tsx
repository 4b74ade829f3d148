// Where the secrets may be sent: known fields of a credential's metadata.
import { t } from "../../texts";
import { TextArea, TextField } from "../../ui/field";
import type { Fields } from "../../ui/schema";
import type { CredentialType } from "./types";

// Those whose test requests an address of its own.
const TESTED_BY_URL: CredentialType[] = ["api_key", "basic_auth", "bearer_token", "custom"];

export const KNOWN = ["allowed_hosts", "test_url", "header"];

export function DestinationFields(
  { type, metadata, onChange, errors }: {
    type: CredentialType;
    metadata: Fields;
    onChange: (metadata: Fields) => void;
    errors: Record<string, string>;
  },
) {
  const texts = t().credentials;
  const set = (name: string, value: unknown) => {
    const { [name]: _, ...others } = metadata;
    onChange(value === undefined ? others : { ...metadata, [name]: value });
  };
  const text = (name: string) => (typeof metadata[name] === "string" ? metadata[name] : "");
  const hosts = metadata.allowed_hosts;
  const hostError = Object.entries(errors).find(([path]) =>
    path.startsWith("metadata.allowed_hosts")
  );
  return (
    <>
      <TextArea
        label={texts.allowedHosts}
        hint={texts.allowedHostsHint}
        error={hostError?.[1]}
        dir="ltr"
        rows={2}
        value={Array.isArray(hosts) ? hosts.join("\n") : ""}
        onInput={(value) => set("allowed_hosts", value ? value.split("\n") : undefined)}
        isOptional
      />
      {TESTED_BY_URL.includes(type) && (
        <TextField
          label={texts.testUrl}
          hint={texts.testUrlHint}
          error={errors["metadata.test_url"]}
          dir="ltr"
          value={text("test_url")}
          onInput={(value) => set("test_url", value || undefined)}
          isOptional
        />
      )}
      {type === "api_key" && (
        <TextField
          label={texts.header}
          hint={texts.headerHint}
          dir="ltr"
          value={text("header")}
          onInput={(value) => set("header", value || undefined)}
          isOptional
        />
      )}
    </>
  );
}

// Lines that are empty are no hosts.
export function tidy(metadata: Fields): Fields {
  const { allowed_hosts: hosts, ...others } = metadata;
  if (!Array.isArray(hosts)) return metadata;
  const names = hosts.map((host) => String(host).trim()).filter(Boolean);
  return names.length ? { ...others, allowed_hosts: names } : others;
}
