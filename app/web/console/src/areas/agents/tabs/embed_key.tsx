// The dialogs of an embed key: a new one, the rules of one, its end.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { api, tagOf } from "../../../api/client";
import { useChange, useRead } from "../../../api/queries";
import type { Schemas } from "../../../api/types";
import { t } from "../../../texts";
import { Button } from "../../../ui/button";
import { Confirm, Dialog } from "../../../ui/dialog";
import { EditDialog } from "../../../ui/edit_state";
import { useEditor } from "../../../ui/editor";
import { NumberField, Switch, TextArea, TextField } from "../../../ui/field";
import { Loaded, Problem } from "../../../ui/states";
import { notify } from "../../../ui/toast";

export const KEYS = "/api/v1/embed/api-keys";
const ONE = "/api/v1/embed/api-keys/{key_id}";
type Key = Schemas["EmbedKeyView"];
type Values = Required<Schemas["UpdateEmbedKey"]>;

const DEFAULTS: Values = {
  name: "",
  allowed_domains: [],
  require_session_token: false,
  require_user_token: false,
  allow_voice: false,
  allow_feedback: true,
  allow_attachments: false,
  max_messages_per_day: null,
  max_tokens_per_day: null,
};
const RULES = [
  "require_session_token",
  "require_user_token",
  "allow_voice",
  "allow_feedback",
  "allow_attachments",
] as const;

function toValues(key: Key): Values {
  const names = Object.keys(DEFAULTS) as (keyof Values)[];
  return Object.fromEntries(names.map((name) => [name, key[name]])) as unknown as Values;
}

function clean<V extends Partial<Values>>(values: V): V {
  const domains = values.allowed_domains?.filter(Boolean);
  return domains ? { ...values, allowed_domains: domains } : values;
}

export function NewKeyDialog(
  { agentId, onClose, onCreated }: {
    agentId: string;
    onClose: () => void;
    onCreated: (created: Schemas["CreatedEmbedKey"]) => void;
  },
) {
  const [values, setValues] = useState(DEFAULTS);
  const texts = t().agents.embed;
  const create = useChange(
    () => api.post(KEYS, { body: { ...clean(values), agent_id: agentId } }),
    [KEYS],
  );
  const errors = create.error?.fields ?? {};
  const submit = (event: Event) => {
    event.preventDefault();
    create.mutate(undefined, {
      onSuccess: (created) => {
        onCreated(created);
        onClose();
      },
    });
  };
  return (
    <Dialog
      title={texts.newKey}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{t().common.cancel}</Button>
          <Button kind="primary" type="submit" form="embed-key" busy={create.isPending}>
            {texts.create}
          </Button>
        </>
      }
    >
      <form id="embed-key" class="stack" onSubmit={submit}>
        <KeyFields
          values={values}
          errors={errors}
          onChange={(changes) => setValues((before) => ({ ...before, ...changes }))}
        />
        {Object.keys(errors).length === 0 && <Problem error={create.error} />}
      </form>
    </Dialog>
  );
}

// Read by itself: a row of the list has no tag.
export function KeyDialog({ stored, onClose }: { stored: Key; onClose: () => void }) {
  const query = useRead(ONE, { path: { key_id: stored.id } });
  const [isRevoking, setRevoking] = useState(false);
  if (isRevoking) return <RevokeDialog stored={stored} onClose={onClose} />;
  if (query.data) {
    return <KeyEditor stored={query.data} onClose={onClose} onRevoke={() => setRevoking(true)} />;
  }
  return (
    <Dialog title={stored.name} onClose={onClose}>
      <Loaded query={query} rows={6}>{() => null as ComponentChildren}</Loaded>
    </Dialog>
  );
}

function KeyEditor(
  { stored, onClose, onRevoke }: { stored: Key; onClose: () => void; onRevoke: () => void },
) {
  const path = { key_id: stored.id };
  const texts = t().agents.embed;
  const store = useChange(
    ({ body, ifMatch }: { body: Partial<Values>; ifMatch: string | undefined }) =>
      api.put(ONE, { path, body }, { ifMatch }),
    [KEYS, ONE],
  );
  const editor = useEditor({
    name: `embed key ${stored.id}`,
    record: stored,
    toValues,
    save: (changes, origin) => store.mutateAsync({ body: clean(changes), ifMatch: tagOf(origin) }),
    reload: () => api.get(ONE, { path }),
    onSaved: onClose,
  });
  const labels = {
    name: t().common.name,
    allowed_domains: texts.domains,
    max_messages_per_day: texts.maxMessages,
    max_tokens_per_day: texts.maxTokens,
    ...texts.rules,
  };
  return (
    <EditDialog
      title={stored.name}
      editor={editor}
      toValues={toValues}
      labels={labels}
      onClose={onClose}
      extra={<Button kind="danger" onClick={onRevoke}>{texts.revoke}</Button>}
    >
      <KeyFields values={editor.values} errors={editor.errors} onChange={editor.set} />
    </EditDialog>
  );
}

function KeyFields(
  { values, errors, onChange }: {
    values: Values;
    errors: Record<string, string>;
    onChange: (changes: Partial<Values>) => void;
  },
) {
  const texts = t().agents.embed;
  return (
    <>
      <TextField
        label={t().common.name}
        value={values.name}
        onInput={(name) => onChange({ name })}
        error={errors.name}
        placeholder={texts.namePlaceholder}
        required
      />
      <TextArea
        label={texts.domains}
        hint={texts.domainsHint}
        value={values.allowed_domains.join("\n")}
        onInput={(text) =>
          onChange({ allowed_domains: text.split("\n").map((line) => line.trim()) })}
        error={errors.allowed_domains}
        isOptional
      />
      {RULES.map((rule) => (
        <Switch
          key={rule}
          label={texts.rules[rule]}
          hint={texts.ruleHints[rule]}
          value={values[rule]}
          onChange={(value) => onChange({ [rule]: value })}
        />
      ))}
      <div class="columns">
        <NumberField
          label={texts.maxMessages}
          value={values.max_messages_per_day}
          onInput={(max_messages_per_day) => onChange({ max_messages_per_day })}
          error={errors.max_messages_per_day}
          min={1}
          isOptional
        />
        <NumberField
          label={texts.maxTokens}
          value={values.max_tokens_per_day}
          onInput={(max_tokens_per_day) => onChange({ max_tokens_per_day })}
          error={errors.max_tokens_per_day}
          min={1}
          isOptional
        />
      </div>
    </>
  );
}

function RevokeDialog({ stored, onClose }: { stored: Key; onClose: () => void }) {
  const texts = t().agents.embed;
  const revoke = useChange(() => api.delete(KEYS, { query: { id: stored.id } }), [KEYS]);
  return (
    <Confirm
      title={texts.revokeTitle(stored.name)}
      action={texts.revoke}
      isBusy={revoke.isPending}
      error={revoke.error}
      onClose={onClose}
      onConfirm={() =>
        revoke.mutate(undefined, {
          onSuccess: () => {
            notify(texts.revoked(stored.name));
            onClose();
          },
        })}
    >
      <p>{texts.revokeAbout}</p>
    </Confirm>
  );
}
