// The fields of a source, by its type.
import { t } from "../../texts";
import { NumberField, PasswordField, SelectField, TextField } from "../../ui/field";
import type { Source } from "./types";

export type Config = Record<string, string>;
type Texts = ReturnType<typeof t>["knowledge"];
type Sync = Pick<Source, "schedule" | "apply" | "max_documents">;

interface Kind {
  config: (keyof Texts["config"])[];
  optional: string[];
  secrets: (keyof Texts["secrets"])[];
}

export const KINDS: Record<Source["type"], Kind> = {
  page: { config: ["url"], optional: [], secrets: [] },
  sitemap: { config: ["url"], optional: [], secrets: [] },
  feed: { config: ["url"], optional: [], secrets: [] },
  s3: {
    config: ["endpoint", "bucket", "prefix", "region"],
    optional: ["prefix", "region"],
    secrets: ["access_key_id", "secret_access_key"],
  },
  git_archive: { config: ["url", "folder"], optional: ["folder"], secrets: ["token"] },
};

export const SYNC_DEFAULTS: Sync = { schedule: "daily", apply: "automatic", max_documents: 200 };

export const filled = (values: Config): Config =>
  Object.fromEntries(
    Object.entries(values).filter(([, value]) => typeof value !== "string" || value.trim()),
  );

export function SyncFields(
  { values, errors, onChange }: {
    values: Sync;
    errors: Record<string, string>;
    onChange: (changes: Partial<Sync>) => void;
  },
) {
  const texts = t().knowledge;
  return (
    <>
      <div class="columns">
        <SelectField
          label={texts.schedule}
          value={values.schedule}
          choices={Object.entries(texts.schedules)}
          onChange={(schedule) => onChange({ schedule: schedule as Source["schedule"] })}
          error={errors.schedule}
        />
        <NumberField
          label={texts.maxDocuments}
          value={values.max_documents}
          min={1}
          max={1000}
          onInput={(number) => onChange({ max_documents: number ?? 200 })}
          error={errors.max_documents}
        />
      </div>
      <SelectField
        label={texts.apply}
        value={values.apply}
        choices={Object.entries(texts.applies)}
        onChange={(apply) => onChange({ apply: apply as Source["apply"] })}
        error={errors.apply}
      />
    </>
  );
}

// Faults of a map as a whole, which no field has.
export function MapProblems({ errors }: { errors: Record<string, string> }) {
  return (
    <>
      {[errors.config, errors.secrets].map((error) =>
        error && <p key={error} class="problem" role="alert" dir="auto">{error}</p>
      )}
    </>
  );
}

export function KindFields(
  { kind, config, secrets, hint, errors, onConfig, onSecrets }: {
    kind: Kind;
    config: Config;
    secrets: Config;
    hint?: string | undefined;
    errors: Record<string, string>;
    onConfig: (config: Config) => void;
    onSecrets: (secrets: Config) => void;
  },
) {
  const texts = t().knowledge;
  return (
    <>
      {kind.config.map((name) => (
        <TextField
          key={name}
          label={texts.config[name]}
          dir="ltr"
          value={config[name] ?? ""}
          onInput={(text) => onConfig({ ...config, [name]: text })}
          error={errors[`config.${name}`]}
          isOptional={kind.optional.includes(name)}
          required={!kind.optional.includes(name)}
        />
      ))}
      {kind.secrets.map((name) => (
        <PasswordField
          key={name}
          label={texts.secrets[name]}
          hint={hint ?? texts.secretHint}
          autocomplete="off"
          value={secrets[name] ?? ""}
          onInput={(text) => onSecrets({ ...secrets, [name]: text })}
          error={errors[`secrets.${name}`]}
        />
      ))}
    </>
  );
}
