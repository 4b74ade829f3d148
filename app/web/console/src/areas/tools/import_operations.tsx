// Which operations of an OpenAPI document become endpoints of a tool.
import { useState } from "preact/hooks";

import { may } from "../../api/session";
import type { Problem as ProblemType } from "../../api/problem";
import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Checkbox, SearchField, TextField } from "../../ui/field";
import { Section } from "../../ui/page";
import { RecordField } from "../../ui/record_picker";
import { Badge } from "../../ui/small";
import { Problem } from "../../ui/states";
import { AUTH_TYPES } from "./types";

type Document = Schemas["ImportedApi"];
type Operation = Document["operations"][number];

export interface Settings {
  operations: string[];
  name?: string;
  base_url?: string;
  credential_id?: string;
}

const MOST = 200;

export function ChooseOperations(
  { document, isBusy, error, onCreate }: {
    document: Document;
    isBusy: boolean;
    error: ProblemType | null;
    onCreate: (settings: Settings) => void;
  },
) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [name, setName] = useState(document.title.slice(0, 100));
  const [baseUrl, setBaseUrl] = useState(document.base_url ?? "");
  const [credential, setCredential] = useState("");
  const texts = t().tools;
  const errors = error?.fields ?? {};
  const placed = ["name", "base_url", "credential_id"];
  const others = Object.entries(errors).filter(([path]) => !placed.includes(path));
  const submit = (event: Event) => {
    event.preventDefault();
    onCreate({
      operations: [...chosen],
      ...(name ? { name } : {}),
      ...(baseUrl ? { base_url: baseUrl } : {}),
      ...(credential ? { credential_id: credential } : {}),
    });
  };
  return (
    <form class="stack form" onSubmit={submit}>
      <Operations document={document} chosen={chosen} onChange={setChosen} />
      <Section title={texts.tool}>
        <div class="columns">
          <TextField
            label={t().common.name}
            value={name}
            onInput={setName}
            error={errors.name}
            maxLength={100}
          />
          <TextField
            label={texts.fields.base_url}
            dir="ltr"
            value={baseUrl}
            onInput={setBaseUrl}
            error={errors.base_url}
            required
          />
        </div>
        <CredentialChoice
          document={document}
          value={credential}
          onChange={setCredential}
          error={errors.credential_id}
        />
        {others.map(([path, text]) => (
          <p key={path} class="problem" role="alert" dir="auto">{`${path}: ${text}`}</p>
        ))}
        {Object.keys(errors).length === 0 && <Problem error={error} />}
      </Section>
      <div class="save-bar">
        <span class="save-state" role="status">
          {chosen.size > MOST ? texts.tooMany(MOST) : t().common.selected(chosen.size)}
        </span>
        <Button
          kind="primary"
          type="submit"
          busy={isBusy}
          disabled={!chosen.size || chosen.size > MOST}
        >
          {texts.create}
        </Button>
      </div>
    </form>
  );
}

function matches({ id, path, summary }: Operation, search: string): boolean {
  return `${id} ${path} ${summary}`.toLowerCase().includes(search.toLowerCase());
}

function Operations(
  { document: { operations, total }, chosen, onChange }: {
    document: Document;
    chosen: ReadonlySet<string>;
    onChange: (chosen: ReadonlySet<string>) => void;
  },
) {
  const [search, setSearch] = useState("");
  const texts = t().tools;
  const shown = operations.filter((operation) => matches(operation, search));
  const possible = shown.filter(({ reason }) => reason === null).map(({ id }) => id);
  const areAll = possible.length > 0 && possible.every((id) => chosen.has(id));
  const toggle = (ids: string[], isOn: boolean) =>
    onChange(
      new Set(isOn ? [...chosen, ...ids] : [...chosen].filter((id) => !ids.includes(id))),
    );
  return (
    <Section
      title={texts.operations}
      about={total > operations.length
        ? t().common.of(operations.length, String(total))
        : undefined}
    >
      <div class="filters">
        <SearchField value={search} onInput={setSearch} />
        <Checkbox
          label={texts.chooseAll}
          value={areAll}
          onChange={(isOn) => toggle(possible, isOn)}
        />
      </div>
      <ul class="operations">
        {shown.map(({ id, method, path, summary, reason, is_deprecated }) => (
          <li key={id}>
            <label class="operation">
              <input
                type="checkbox"
                checked={chosen.has(id)}
                disabled={reason !== null}
                onChange={(event) => toggle([id], event.currentTarget.checked)}
              />
              <code>{method}</code>
              <code class="clip" dir="ltr">{path}</code>
              {is_deprecated && <Badge tone="warn">{texts.deprecated}</Badge>}
              <span class={reason ? "problem" : "soft"} dir="auto">{reason ?? summary}</span>
            </label>
          </li>
        ))}
      </ul>
    </Section>
  );
}

// Credentials that fit one of the ways in which the API authenticates its callers.
function CredentialChoice(
  { document, value, onChange, error }: {
    document: Document;
    value: string;
    onChange: (id: string) => void;
    error: string | undefined;
  },
) {
  const types = document.security.flatMap(({ auth_type: type }) =>
    type && type !== "none" ? AUTH_TYPES[type].credentials : []
  );
  const texts = t().tools;
  if (!types.length || !may("credentials:read")) {
    return <p class="hint">{types.length ? texts.credentialLater : texts.noSecurity}</p>;
  }
  return (
    <RecordField
      kind="credential"
      types={types}
      label={texts.credential}
      hint={texts.credentialLater}
      error={error}
      value={value}
      none={t().common.none}
      onChange={onChange}
    />
  );
}
