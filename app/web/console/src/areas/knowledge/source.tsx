// One source: what its last sync found, and the changes that wait for somebody.
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useChange, useRead } from "../../api/queries";
import { t } from "../../texts";
import { Button, LinkButton } from "../../ui/button";
import { CopyText } from "../../ui/copy";
import { Dialog } from "../../ui/dialog";
import { formatNumber } from "../../ui/format";
import { Facts, Section } from "../../ui/page";
import { Ago, Badge } from "../../ui/small";
import { Problem } from "../../ui/states";
import { EditSource } from "./edit_source";
import { SourceBadge, useSync } from "./sources";
import { DOCUMENTS, type Source, SOURCES } from "./types";

const CHANGES = "/api/v1/agents/{agent_id}/sources/{source_id}/changes";

export function SourceDrawer(
  { agentId, source, onClose }: { agentId: string; source: Source; onClose: () => void },
) {
  const sync = useSync(agentId, source.id);
  const [isEditing, setEditing] = useState(false);
  const texts = t().knowledge;
  const { added, changed, removed, left_out, skipped } = source.last_sync;
  const counts = { added, changed, removed, left_out, skipped };
  if (isEditing) {
    return <EditSource agentId={agentId} source={source} onClose={() => setEditing(false)} />;
  }
  return (
    <Dialog
      title={source.name}
      isDrawer
      onClose={onClose}
      actions={
        <>
          <LinkButton to={`/knowledge/${agentId}?source=${source.id}`}>
            {texts.showDocuments}
          </LinkButton>
          <Button onClick={() => setEditing(true)}>{t().common.edit}</Button>
          <Button kind="primary" busy={sync.isPending} onClick={() => sync.mutate()}>
            {texts.syncNow}
          </Button>
        </>
      }
    >
      <Problem error={sync.error} />
      {source.error && (
        <p class="note bad" dir="auto">
          <span>{source.error}</span>
        </p>
      )}
      <Facts
        rows={[
          [t().common.status, <SourceBadge key="status" status={source.status} />],
          [texts.sourceType, texts.sourceTypes[source.type]],
          ...Object.entries(source.config).map(([name, value]) =>
            [
              texts.config[name as keyof typeof texts.config] ?? name,
              (
                <span dir="auto">{String(value)}</span>
              ),
            ] as [string, preact.ComponentChildren]
          ),
          [texts.schedule, texts.schedules[source.schedule]],
          [texts.apply, texts.applies[source.apply]],
          [texts.lastSync, <Ago key="last" at={source.last_synced_at} />],
          [texts.nextSync, <Ago key="next" at={source.next_sync_at} />],
          ...Object.entries(counts).map(([name, value]) =>
            [texts.counts[name as keyof typeof counts], formatNumber(value)] as [string, string]
          ),
          [texts.id, <CopyText key="id" text={source.id} />],
        ]}
      />
      {source.change_count > 0 && <Review agentId={agentId} source={source} />}
      {source.problems.length > 0 && (
        <Section title={texts.notRead}>
          <ul class="rows">
            {source.problems.map(({ url, problem }) => (
              <li key={url}>
                <div class="grow">
                  <div dir="ltr">{url}</div>
                  <div class="problem" dir="auto">{problem}</div>
                </div>
              </li>
            ))}
          </ul>
        </Section>
      )}
    </Dialog>
  );
}

function Review({ agentId, source }: { agentId: string; source: Source }) {
  const path = { agent_id: agentId, source_id: source.id };
  const changes = useRead(CHANGES, { path, query: { per_page: 50 } });
  const apply = useChange(() => api.post(`${CHANGES}/apply`, { path }), [SOURCES, DOCUMENTS]);
  const discard = useChange(() => api.post(`${CHANGES}/discard`, { path }), [SOURCES]);
  const texts = t().knowledge;
  return (
    <Section
      title={texts.review(source.change_count)}
      actions={
        <>
          <Button busy={discard.isPending} onClick={() => discard.mutate()}>{texts.discard}</Button>
          <Button busy={apply.isPending} onClick={() => apply.mutate()}>{texts.applyAll}</Button>
        </>
      }
    >
      <Problem error={apply.error ?? discard.error ?? changes.error} />
      <ul class="rows">
        {changes.data?.data.map(({ id, change, name, url }) => (
          <li key={id}>
            <Badge tone={change === "removed" ? "bad" : "accent"}>{texts.changes[change]}</Badge>
            <span dir="auto" title={url}>{name}</span>
          </li>
        ))}
      </ul>
    </Section>
  );
}
