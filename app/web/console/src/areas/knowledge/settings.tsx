// How the agent searches its documents in a turn.
import { api, tagOf } from "../../api/client";
import { useChange, useRead } from "../../api/queries";
import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import { EditNotes, SaveButton, SaveState } from "../../ui/edit_state";
import { useEditor } from "../../ui/editor";
import { NumberField, SelectField, TextField } from "../../ui/field";
import { JsonField } from "../../ui/json_field";
import { Section } from "../../ui/page";
import { Loaded } from "../../ui/states";
import { useValidity } from "../../ui/validity";
import { NamesField } from "./fields";

const SETTINGS = "/api/v1/agents/{agent_id}/retrieval";
type Settings = Schemas["RetrievalSettings"];
type Values = Required<Omit<Settings, "filter">> & {
  tags: string[];
  languages: string[];
  fields: NonNullable<Schemas["DocumentFilter"]["fields"]>;
};

export function RetrievalSettings({ agentId }: { agentId: string }) {
  const settings = useRead(SETTINGS, { path: { agent_id: agentId } });
  const texts = t().knowledge;
  return (
    <Section title={texts.tabs.settings} about={texts.settingsAbout}>
      <Loaded query={settings}>
        {(record) => <SettingsForm agentId={agentId} record={record} />}
      </Loaded>
    </Section>
  );
}

function toValues(record: Settings): Values {
  const { filter } = record;
  return {
    max_passages: record.max_passages ?? 5,
    complete_questions: record.complete_questions ?? "words",
    question_model: record.question_model ?? null,
    rerank_model: record.rerank_model ?? null,
    rerank_timeout_ms: record.rerank_timeout_ms ?? 800,
    tags: filter?.tags ?? [],
    languages: filter?.languages ?? [],
    fields: filter?.fields ?? {},
  };
}

function toSettings({ tags, languages, fields, ...rest }: Values): Settings {
  return { ...rest, filter: { tags, languages, fields } };
}

function SettingsForm({ agentId, record }: { agentId: string; record: Settings }) {
  const path = { agent_id: agentId };
  const validity = useValidity();
  const texts = t().knowledge;
  const labels = texts.settings;
  const store = useChange(
    ({ body, ifMatch }: { body: Settings; ifMatch: string | undefined }) =>
      api.put(SETTINGS, { path, body }, { ifMatch }),
    [SETTINGS],
  );
  const editor = useEditor({
    name: `retrieval ${agentId}`,
    record,
    toValues,
    // What is left out would have its default again.
    save: (changes, origin) =>
      store.mutateAsync({
        body: toSettings({ ...toValues(origin), ...changes }),
        ifMatch: tagOf(origin),
      }),
    reload: () => api.get(SETTINGS, { path }),
  });
  const { values, set, errors } = editor;
  return (
    <div class="stack narrow">
      <EditNotes editor={editor} toValues={toValues} labels={labels} />
      <NumberField
        label={labels.max_passages}
        hint={texts.maxPassagesHint}
        value={values.max_passages}
        min={1}
        max={20}
        onInput={(number) => set({ max_passages: number ?? 5 })}
        error={errors.max_passages}
      />
      <SelectField
        label={labels.complete_questions}
        hint={texts.completeHint}
        value={values.complete_questions}
        choices={Object.entries(texts.completions)}
        onChange={(value) => set({ complete_questions: value as Values["complete_questions"] })}
        error={errors.complete_questions}
      />
      {values.complete_questions === "model" && (
        <TextField
          label={labels.question_model}
          hint={texts.questionModelHint}
          isOptional
          dir="ltr"
          value={values.question_model ?? ""}
          onInput={(text) => set({ question_model: text || null })}
          error={errors.question_model}
        />
      )}
      <TextField
        label={labels.rerank_model}
        hint={texts.rerankHint}
        isOptional
        dir="ltr"
        value={values.rerank_model ?? ""}
        onInput={(text) => set({ rerank_model: text || null })}
        error={errors.rerank_model}
      />
      {values.rerank_model && (
        <NumberField
          label={labels.rerank_timeout_ms}
          value={values.rerank_timeout_ms}
          min={100}
          onInput={(number) => set({ rerank_timeout_ms: number ?? 800 })}
          error={errors.rerank_timeout_ms}
        />
      )}
      <NamesField
        label={labels.tags}
        hint={texts.filterTagsHint}
        isOptional
        value={values.tags}
        onChange={(tags) => set({ tags })}
        error={errors["filter.tags"]}
      />
      <NamesField
        label={labels.languages}
        hint={texts.filterLanguagesHint}
        isOptional
        value={values.languages}
        onChange={(languages) => set({ languages })}
        error={errors["filter.languages"]}
      />
      <JsonField
        name="fields"
        label={labels.fields}
        hint={texts.filterFieldsHint}
        value={values.fields}
        onChange={(fields) => set({ fields: (fields ?? {}) as Values["fields"] })}
        error={errors["filter.fields"]}
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
