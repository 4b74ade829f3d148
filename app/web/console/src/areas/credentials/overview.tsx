// What is known of a credential, and what of it is not secret and can be changed.
import { api, tagOf } from "../../api/client";
import { queries, refresh, useChange } from "../../api/queries";
import { may } from "../../api/session";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { EditNotes, SaveButton, SaveState } from "../../ui/edit_state";
import { useEditor } from "../../ui/editor";
import { TextArea, TextField } from "../../ui/field";
import { formatDuration } from "../../ui/format";
import { JsonField } from "../../ui/json_field";
import { Facts, Section } from "../../ui/page";
import type { Fields } from "../../ui/schema";
import { Ago } from "../../ui/small";
import { Problem } from "../../ui/states";
import { useValidity } from "../../ui/validity";
import { DestinationFields, KNOWN, tidy } from "./destination_fields";
import { typeName } from "./list";
import type { Credential } from "./types";

const PATH = "/v1/credentials/{credential_id}";
const CHANGED = [PATH, "/v1/credentials", "/v1/credentials/{credential_id}/audit"] as const;

export function Overview({ record }: { record: Credential }) {
  const { type, secret_keys, last_used_at, last_tested_at, token_expires_at, description } = record;
  const texts = t().credentials;
  return (
    <>
      <Section
        title={texts.state}
        actions={may("credentials:write") && <ConnectionTest id={record.id} />}
      >
        <Facts
          rows={[
            [texts.type, typeName(type)],
            [texts.secrets, <code key="keys" dir="auto">{secret_keys.join(", ")}</code>],
            [texts.lastUsed, <Ago key="used" at={last_used_at} />],
            [texts.lastTested, <Ago key="tested" at={last_tested_at} />],
            ...(type === "oauth2"
              ? [[texts.expires, <Ago key="expires" at={token_expires_at} />] as const]
              : []).map(([label, value]): [string, preact.JSX.Element] => [label, value]),
            [t().common.created, <Ago key="created" at={record.created_at} />],
          ]}
        />
      </Section>
      {may("credentials:write") ? <EditForm record={record} /> : <p dir="auto">{description}</p>}
    </>
  );
}

// Opens a real connection. The result stays until the next one.
function ConnectionTest({ id }: { id: string }) {
  const test = useChange(
    () => api.post("/v1/credentials/{credential_id}/test", { path: { credential_id: id } }),
    [...CHANGED],
  );
  const texts = t().credentials;
  const result = test.data;
  return (
    <>
      <span role="status">
        {result && !test.isPending && (
          <span class={result.success ? "soft" : "problem"} dir="auto">
            {result.success ? texts.testGood(formatDuration(result.latency_ms)) : result.message}
          </span>
        )}
      </span>
      <Problem error={test.error} />
      <Button busy={test.isPending} onClick={() => test.mutate(undefined)}>
        {test.isPending ? texts.testing : texts.test}
      </Button>
    </>
  );
}

interface Values {
  name: string;
  description: string;
  metadata: Fields;
}

function toValues({ name, description, metadata }: Credential): Values {
  return { name, description, metadata };
}

function EditForm({ record }: { record: Credential }) {
  const path = { credential_id: record.id };
  const texts = t().credentials;
  const validity = useValidity();
  const editor = useEditor<Credential, Values>({
    name: `credential ${record.id}`,
    record,
    toValues,
    save: ({ metadata, ...changes }, origin) => {
      const body = { ...changes, ...(metadata ? { metadata: tidy(metadata) } : {}) };
      return api.put(PATH, { path, body }, { ifMatch: tagOf(origin) });
    },
    reload: () => api.get(PATH, { path }),
    onSaved: () => void refresh(queries, [...CHANGED]),
  });
  const { values, set, errors } = editor;
  const known = Object.entries(values.metadata).filter(([name]) => KNOWN.includes(name));
  const others = Object.entries(values.metadata).filter(([name]) => !KNOWN.includes(name));
  return (
    <form
      class="stack form"
      onSubmit={(event) => {
        event.preventDefault();
        if (validity.isValid) void editor.save();
      }}
    >
      <EditNotes
        editor={editor}
        toValues={toValues}
        labels={{ name: t().common.name, description: t().common.description }}
      />
      <Section title={texts.details}>
        <TextField
          label={t().common.name}
          value={values.name}
          onInput={(name) => set({ name })}
          error={errors.name}
          maxLength={100}
          required
        />
        <TextArea
          label={t().common.description}
          value={values.description}
          onInput={(description) => set({ description })}
          error={errors.description}
          maxLength={2000}
          isOptional
        />
        <DestinationFields
          type={record.type}
          metadata={values.metadata}
          onChange={(metadata) => set({ metadata })}
          errors={errors}
        />
        <JsonField
          name="metadata"
          label={texts.metadata}
          hint={texts.metadataHint}
          error={errors.metadata}
          value={others.length ? Object.fromEntries(others) : undefined}
          onChange={(value) =>
            set({ metadata: { ...Object.fromEntries(known), ...(value as Fields | undefined) } })}
          validity={validity}
          isObject
          isOptional
        />
      </Section>
      <div class="save-bar">
        <SaveState editor={editor} />
        {editor.isChanged && <Button onClick={editor.discard}>{texts.discard}</Button>}
        {validity.isValid && <SaveButton editor={editor} />}
      </div>
    </form>
  );
}
