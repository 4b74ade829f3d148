import { KeyRound, Plus } from "lucide-preact";
import { useState } from "preact/hooks";

import { api, tagOf } from "../../../api/client";
import { useChange, useList } from "../../../api/queries";
import type { Schemas } from "../../../api/types";
import { BASE } from "../../../base";
import { t } from "../../../texts";
import { Button } from "../../../ui/button";
import { Snippet } from "../../../ui/content";
import { CopyButton } from "../../../ui/copy";
import { Confirm, Dialog } from "../../../ui/dialog";
import { NumberField, Switch, TextArea, TextField } from "../../../ui/field";
import { ListTable } from "../../../ui/list";
import { Section } from "../../../ui/page";
import { Ago } from "../../../ui/small";
import { Empty, Problem } from "../../../ui/states";
import { notify } from "../../../ui/toast";
import type { TabProps } from "../tabs";

const KEYS = "/api/v1/embed/api-keys";
type Key = Schemas["EmbedKeyView"];
type Created = Schemas["CreatedEmbedKey"];

export function Embedding({ agent }: TabProps) {
  const list = useList(KEYS, { query: { agent_id: agent.id } });
  const [open, setOpen] = useState<Key | "new" | null>(null);
  const [created, setCreated] = useState<Created | null>(null);
  const texts = t().agents.embed;
  const add = <Button icon={Plus} onClick={() => setOpen("new")}>{texts.newKey}</Button>;
  return (
    <Section
      title={t().agents.tabs.embedding}
      about={texts.about}
      actions={list.rows?.length ? add : null}
    >
      {created && <NewKey created={created} onClose={() => setCreated(null)} />}
      <ListTable
        label={t().agents.tabs.embedding}
        list={list}
        keyOf={({ id }) => id}
        onOpen={setOpen}
        empty={
          <Empty icon={KeyRound} title={texts.emptyTitle} action={add}>{texts.emptyAbout}</Empty>
        }
        columns={[
          { key: "name", label: t().common.name, cell: ({ name }) => name },
          {
            key: "domains",
            label: texts.domains,
            isSecondary: true,
            cell: ({ allowed_domains }) => allowed_domains.join(", ") || texts.anywhere,
          },
          {
            key: "prefix",
            label: texts.key,
            width: "136px",
            isSecondary: true,
            cell: ({ key_prefix }) => <code>{key_prefix}…</code>,
          },
          {
            key: "created",
            label: t().common.created,
            width: "128px",
            cell: ({ created_at }) => <Ago at={created_at} />,
          },
        ]}
      />
      {open && (
        <KeyDialog
          agentId={agent.id}
          stored={open === "new" ? null : open}
          onClose={() => setOpen(null)}
          onCreated={setCreated}
        />
      )}
    </Section>
  );
}

// The key and its secret are shown once.
function NewKey({ created, onClose }: { created: Created; onClose: () => void }) {
  const texts = t().agents.embed;
  return (
    <div class="card stack">
      <p>{texts.snippetAbout}</p>
      <Snippet text={created.embed_code} label={texts.snippet} />
      <p class="soft">{texts.secretAbout}</p>
      <div class="actions">
        <CopyButton text={created.identity_secret} label={texts.copySecret} />
        <Button onClick={onClose}>{texts.done}</Button>
      </div>
      <LiveWidget apiKey={created.api_key} />
    </div>
  );
}

// The chat as visitors see it, in the frame that sites embed.
function LiveWidget({ apiKey }: { apiKey: string }) {
  const address = `${BASE}/embed/frame?${new URLSearchParams({ api_key: apiKey })}`;
  return <iframe class="live-widget" src={address} title={t().agents.embed.preview} />;
}

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

function KeyDialog(
  { agentId, stored, onClose, onCreated }: {
    agentId: string;
    stored: Key | null;
    onClose: () => void;
    onCreated: (created: Created) => void;
  },
) {
  const [values, setValues] = useState<Values>({ ...DEFAULTS, ...pick(stored) });
  const [isRevoking, setRevoking] = useState(false);
  const texts = t().agents.embed;
  const set = (changes: Partial<Values>) => setValues((before) => ({ ...before, ...changes }));
  const save = useChange(async () => {
    const body = { ...values, allowed_domains: values.allowed_domains.filter(Boolean) };
    if (!stored) {
      onCreated(await api.post(KEYS, { body: { ...body, agent_id: agentId } }));
      return;
    }
    const path = { key_id: stored.id };
    await api.put(`${KEYS}/{key_id}`, { path, body }, { ifMatch: tagOf(stored) });
  }, [KEYS]);
  const errors = save.error?.fields ?? {};
  const submit = (event: Event) => {
    event.preventDefault();
    save.mutate(undefined, { onSuccess: onClose });
  };
  if (stored && isRevoking) {
    return <RevokeDialog stored={stored} onClose={onClose} />;
  }
  return (
    <Dialog
      title={stored?.name ?? texts.newKey}
      onClose={onClose}
      actions={
        <>
          {stored && <Button kind="danger" onClick={() => setRevoking(true)}>{texts.revoke}
          </Button>}
          <span class="grow" />
          <Button onClick={onClose}>{t().common.cancel}</Button>
          <Button kind="primary" type="submit" form="embed-key" busy={save.isPending}>
            {stored ? t().common.save : texts.create}
          </Button>
        </>
      }
    >
      <form id="embed-key" class="stack" onSubmit={submit}>
        <TextField
          label={t().common.name}
          value={values.name}
          onInput={(name) => set({ name })}
          error={errors.name}
          placeholder={texts.namePlaceholder}
          required
        />
        <TextArea
          label={texts.domains}
          hint={texts.domainsHint}
          value={values.allowed_domains.join("\n")}
          onInput={(text) => set({ allowed_domains: text.split("\n").map((line) => line.trim()) })}
          error={errors.allowed_domains}
          isOptional
        />
        {RULES.map((rule) => (
          <Switch
            key={rule}
            label={texts.rules[rule]}
            hint={texts.ruleHints[rule]}
            value={values[rule]}
            onChange={(value) => set({ [rule]: value })}
          />
        ))}
        <div class="columns">
          <NumberField
            label={texts.maxMessages}
            value={values.max_messages_per_day}
            onInput={(max_messages_per_day) => set({ max_messages_per_day })}
            error={errors.max_messages_per_day}
            min={1}
            isOptional
          />
          <NumberField
            label={texts.maxTokens}
            value={values.max_tokens_per_day}
            onInput={(max_tokens_per_day) => set({ max_tokens_per_day })}
            error={errors.max_tokens_per_day}
            min={1}
            isOptional
          />
        </div>
        {Object.keys(errors).length === 0 && <Problem error={save.error} />}
      </form>
    </Dialog>
  );
}

function pick(stored: Key | null): Partial<Values> {
  if (!stored) return {};
  const names = Object.keys(DEFAULTS) as (keyof Values)[];
  return Object.fromEntries(names.map((name) => [name, stored[name]]));
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
