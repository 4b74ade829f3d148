// The settings of a tool, of a new one as well.
import { useMemo } from "preact/hooks";

import { api, tagOf } from "../../api/client";
import { queries, refresh, useChange } from "../../api/queries";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { EditNotes, SaveState } from "../../ui/edit_state";
import { type Editor, useEditor } from "../../ui/editor";
import { SelectField, Switch, TextArea, TextField } from "../../ui/field";
import { JsonField } from "../../ui/json_field";
import { Section } from "../../ui/page";
import { Problem } from "../../ui/states";
import { useValidity, type Validity } from "../../ui/validity";
import { useAuth } from "./auth";
import { AuthForm } from "./auth_form";
import { ConfigForm } from "./config_form";
import { type Tool, type ToolType, TYPES } from "./types";
import { configChanges, creationOf, type Stored, toValues, type Values } from "./values";

const PATH = "/v1/tools/{tool_id}";

type ToolEditor = Editor<Stored, Values>;

function useToolEditor(
  record: Stored,
  auth: () => object,
  onSaved: (record: Stored) => void,
) {
  const { id, tool_type: type } = record.data;
  const path = { tool_id: id };
  const save = async (changes: Partial<Values>, origin: Stored): Promise<Stored> => {
    if (!id) {
      const all = { ...toValues(record), ...changes };
      const made = await api.post("/v1/tools", { body: creationOf(type, all, auth()) });
      return api.get(PATH, { path: { tool_id: made.data.id } });
    }
    const settings = changes.config
      ? { config: configChanges(origin.data.config, changes.config) }
      : {};
    const body = { ...changes, ...settings, ...auth() } as object;
    return api.put(PATH, { path, body }, { ifMatch: tagOf(origin) });
  };
  return useEditor<Stored, Values>({
    name: id ? `tool ${id}` : `new tool ${type}`,
    record,
    toValues,
    save,
    reload: () => api.get(PATH, { path }),
    onSaved,
  });
}

export function ToolForm(
  { record, onStored }: { record: Stored; onStored?: (id: string) => void },
) {
  const { id, tool_type: type } = record.data;
  const auth = useAuth(record.data);
  const validity = useValidity();
  const stored = async (next: Stored) => {
    auth.reset();
    await refresh(queries, ["/v1/tools", PATH]);
    onStored?.(next.data.id);
  };
  const editor = useToolEditor(record, auth.body, stored);
  // The secrets alone, when nothing else has changed.
  const saveAuth = useChange(() =>
    api.put(PATH, { path: { tool_id: id }, body: auth.body() }, {
      ifMatch: tagOf(record),
    })
      .then(stored)
  );
  const isNew = !id;
  const isChanged = editor.isChanged || auth.isTouched;
  const errors = { ...saveAuth.error?.fields, ...editor.errors };
  const save = async () => {
    if (!validity.isValid || !isChanged) return;
    saveAuth.reset();
    if (editor.isChanged) await editor.save();
    else saveAuth.mutate(undefined);
  };
  return (
    <form
      class="stack form"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <EditNotes editor={editor} toValues={toValues} labels={fieldLabels()} />
      <Basics editor={editor} errors={errors} isNew={isNew} />
      <ConfigForm
        id={id || undefined}
        type={type}
        config={editor.values.config}
        onChange={(config) => editor.set({ config })}
        errors={errors}
        validity={validity}
        isChanged={editor.isChanged}
        onDiscover={({ input_schema, description }) =>
          editor.set({
            input_schema,
            ...(editor.values.description ? {} : { description: description.slice(0, 2000) }),
          })}
      />
      {TYPES[type].takesAuth && (
        <AuthForm
          id={id || undefined}
          auth={auth}
          errors={errors}
          validity={validity}
        />
      )}
      <SchemaFields editor={editor} errors={errors} validity={validity} />
      {Object.keys(errors).length === 0 && <Problem error={saveAuth.error} />}
      <Unplaced errors={errors} type={type} />
      <div class="save-bar">
        {auth.isTouched && !editor.isChanged
          ? <span class="save-state" role="status">{t().common.unsaved}</span>
          : <SaveState editor={editor} />}
        {isChanged && !isNew && (
          <Button
            onClick={() => {
              editor.discard();
              auth.reset();
            }}
          >
            {t().tools.discard}
          </Button>
        )}
        <Button
          kind="primary"
          type="submit"
          disabled={!isChanged || !validity.isValid}
          busy={editor.isSaving || saveAuth.isPending}
        >
          {isNew ? t().tools.create : t().common.save}
        </Button>
      </div>
    </form>
  );
}

interface PartProps {
  editor: ToolEditor;
  errors: Record<string, string>;
}

function Basics({ editor, errors, isNew }: PartProps & { isNew: boolean }) {
  const { values, set } = editor;
  const texts = t().tools;
  return (
    <Section>
      <div class="columns">
        <TextField
          label={t().common.name}
          hint={texts.nameHint}
          value={values.name}
          onInput={(name) => set({ name })}
          error={errors.name}
          maxLength={100}
          required
        />
        <SelectField
          label={texts.category}
          value={values.category}
          choices={Object.entries(texts.categories)}
          onChange={(category) => set({ category: category as Tool["category"] })}
          error={errors.category}
        />
      </div>
      <TextArea
        label={t().common.description}
        hint={texts.descriptionHint}
        value={values.description}
        onInput={(description) => set({ description })}
        error={errors.description}
        maxLength={2000}
        isOptional
      />
      <div class="columns">
        <TextField
          label={texts.slug}
          hint={texts.slugHint}
          value={values.slug}
          onInput={(slug) => set({ slug })}
          error={errors.slug}
          dir="ltr"
          maxLength={100}
          isOptional={isNew}
        />
        <Switch
          label={texts.enabled}
          hint={texts.enabledHint}
          value={values.is_enabled}
          onChange={(is_enabled) => set({ is_enabled })}
        />
      </div>
    </Section>
  );
}

function SchemaFields(
  { editor, errors, validity }: PartProps & { validity: Validity },
) {
  const texts = t().tools;
  const { input_schema, output_schema } = editor.values;
  return (
    <Section title={texts.schemas} about={texts.schemasAbout}>
      <JsonField
        name="input_schema"
        label={texts.inputSchema}
        value={input_schema ?? undefined}
        onChange={(value) => editor.set({ input_schema: value ?? null })}
        error={errorBelow(errors, "input_schema")}
        validity={validity}
        isObject
        isOptional
      />
      <JsonField
        name="output_schema"
        label={texts.outputSchema}
        value={output_schema ?? undefined}
        onChange={(value) => editor.set({ output_schema: value ?? null })}
        error={errorBelow(errors, "output_schema")}
        validity={validity}
        isObject
        isOptional
      />
    </Section>
  );
}

function errorBelow(
  errors: Record<string, string>,
  name: string,
): string | undefined {
  return Object.entries(errors).find(([key]) => key === name || key.startsWith(`${name}.`))?.[1];
}

// Errors of fields that are not on the page, such as those within a JSON text.
function Unplaced(
  { errors, type }: { errors: Record<string, string>; type: ToolType },
) {
  const placed = useMemo(
    () => new Set(TYPES[type].fields.map(({ key }) => `config.${key}`)),
    [type],
  );
  const others = Object.entries(errors).filter(([key]) =>
    key.startsWith("config.") && !placed.has(key) && !key.endsWith(".path")
  );
  return (
    <>
      {others.map(([key, text]) => (
        <p key={key} class="problem" role="alert" dir="auto">
          {`${key}: ${text}`}
        </p>
      ))}
    </>
  );
}

export function fieldLabels(): Record<string, string> {
  const texts = t().tools;
  return {
    name: t().common.name,
    description: t().common.description,
    category: texts.category,
    slug: texts.slug,
    is_enabled: texts.enabled,
    config: texts.config,
    input_schema: texts.inputSchema,
    output_schema: texts.outputSchema,
  };
}
