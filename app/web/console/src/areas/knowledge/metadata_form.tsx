// Who is answered from a document, and what filters find it by.
import { api, tagOf } from "../../api/client";
import { useChange } from "../../api/queries";
import type { Body } from "../../api/types";
import { t } from "../../texts";
import { EditNotes, SaveButton, SaveState } from "../../ui/edit_state";
import { useEditor } from "../../ui/editor";
import { SelectField, TextField } from "../../ui/field";
import { JsonField } from "../../ui/json_field";
import { useValidity } from "../../ui/validity";
import { fromLocal, NamesField, toLocal } from "./fields";
import { DOCUMENT, type Document, DOCUMENTS } from "./types";

type Change = Body<typeof DOCUMENT, "patch">;

const NAMES = [
  "visibility",
  "tags",
  "groups",
  "language",
  "valid_from",
  "valid_until",
  "fields",
] as const;
type Values = Pick<Document, typeof NAMES[number]>;

function toValues(document: Document): Values {
  return Object.fromEntries(NAMES.map((name) => [name, document[name]])) as unknown as Values;
}

export function MetadataForm({ agentId, document }: { agentId: string; document: Document }) {
  const path = { agent_id: agentId, document_id: document.id };
  const texts = t().knowledge;
  const validity = useValidity();
  const store = useChange(
    ({ body, ifMatch }: { body: Change; ifMatch: string | undefined }) =>
      api.patch(DOCUMENT, { path, body }, { ifMatch }),
    [DOCUMENT, DOCUMENTS],
  );
  const editor = useEditor({
    name: `document ${document.id}`,
    record: document,
    toValues,
    save: (changes, origin) =>
      store.mutateAsync({ body: changes as Change, ifMatch: tagOf(origin) }),
    reload: () => api.get(DOCUMENT, { path }),
  });
  const { values, set, errors } = editor;
  return (
    <div class="stack">
      <EditNotes editor={editor} toValues={toValues} labels={texts.metadata} />
      <SelectField
        label={texts.metadata.visibility}
        hint={texts.visibilityHint}
        value={values.visibility}
        choices={Object.entries(texts.visibilities)}
        onChange={(visibility) => set({ visibility: visibility as Values["visibility"] })}
        error={errors.visibility}
      />
      <NamesField
        label={texts.metadata.tags}
        hint={texts.tagsHint}
        value={values.tags}
        onChange={(tags) => set({ tags })}
        error={errors.tags}
      />
      <NamesField
        label={texts.metadata.groups}
        hint={texts.groupsHint}
        value={values.groups}
        onChange={(groups) => set({ groups })}
        error={errors.groups}
      />
      <TextField
        label={texts.metadata.language}
        hint={texts.languageHint}
        value={values.language ?? ""}
        maxLength={3}
        onInput={(language) => set({ language: language || null })}
        error={errors.language}
      />
      <div class="columns">
        <TextField
          type="datetime-local"
          label={texts.metadata.valid_from}
          value={toLocal(values.valid_from)}
          onInput={(text) => set({ valid_from: fromLocal(text) })}
          error={errors.valid_from}
        />
        <TextField
          type="datetime-local"
          label={texts.metadata.valid_until}
          value={toLocal(values.valid_until)}
          onInput={(text) => set({ valid_until: fromLocal(text) })}
          error={errors.valid_until}
        />
      </div>
      <JsonField
        name="fields"
        label={texts.metadata.fields}
        hint={texts.fieldsHint}
        value={values.fields}
        onChange={(fields) => set({ fields: (fields ?? {}) as Values["fields"] })}
        error={errors.fields}
        validity={validity}
        isObject
      />
      <div class="actions">
        <SaveButton editor={editor} />
        <SaveState editor={editor} />
      </div>
    </div>
  );
}
