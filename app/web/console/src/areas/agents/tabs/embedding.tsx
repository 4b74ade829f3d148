import { KeyRound, Plus } from "lucide-preact";
import { useState } from "preact/hooks";

import { useList } from "../../../api/queries";
import type { Schemas } from "../../../api/types";
import { BASE } from "../../../base";
import { t } from "../../../texts";
import { Button } from "../../../ui/button";
import { Snippet } from "../../../ui/content";
import { CopyButton } from "../../../ui/copy";
import { ListTable } from "../../../ui/list";
import { Section } from "../../../ui/page";
import { Ago } from "../../../ui/small";
import { Empty } from "../../../ui/states";
import type { TabProps } from "../tabs";
import { KeyDialog, KEYS, NewKeyDialog } from "./embed_key";

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
      {open === "new" && (
        <NewKeyDialog
          agentId={agent.id}
          onClose={() => setOpen(null)}
          onCreated={setCreated}
        />
      )}
      {open && open !== "new" && <KeyDialog stored={open} onClose={() => setOpen(null)} />}
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
