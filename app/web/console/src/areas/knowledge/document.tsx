// One document: what is known about it, who is answered from it, and its passages.
import { Ellipsis } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";

import { toCurl } from "../../api/client";
import { useChange, useRead } from "../../api/queries";
import { href } from "../../base";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { CopyButton, CopyText } from "../../ui/copy";
import { formatNumber, formatSize } from "../../ui/format";
import { Menu } from "../../ui/menu";
import { Card, Facts, Page } from "../../ui/page";
import { Ago, Progress, Tabs } from "../../ui/small";
import { Failure, Problem, Skeleton } from "../../ui/states";
import { deleteDocument, download, reindex } from "./document_actions";
import { DocumentBadge, explain } from "./document_state";
import { MetadataForm } from "./metadata_form";
import { Passages } from "./passages";
import { AGENT, DOCUMENT, type Document, isWorking, WORKING_MS } from "./types";

type Fact = [string, ComponentChildren];

export function DocumentScreen({ agentId, documentId }: { agentId: string; documentId: string }) {
  const path = { agent_id: agentId, document_id: documentId };
  const [isBusy, setBusy] = useState(false);
  const agent = useRead(AGENT, { path: { agent_id: agentId } });
  const document = useRead(DOCUMENT, { path }, { refetchInterval: isBusy && WORKING_MS });
  const busy = document.data ? isWorking(document.data) : false;
  if (busy !== isBusy) setBusy(busy);
  const texts = t().knowledge;
  const parents = [
    { label: t().rail.knowledge, to: "/knowledge" },
    { label: agent.data?.name ?? texts.agent, to: `/knowledge/${agentId}` },
  ];
  if (!document.data) {
    return (
      <Page title={texts.document} parents={parents}>
        {document.error
          ? <Failure error={document.error} onRetry={document.refetch} />
          : <Skeleton />}
      </Page>
    );
  }
  const tabs = [
    ["passages", texts.passages, document.data.chunk_count],
    ["about", texts.details],
  ] as const;
  return (
    <Page
      title={document.data.name}
      parents={parents}
      beside={<DocumentBadge document={document.data} />}
      actions={<Actions agentId={agentId} document={document.data} />}
    >
      <Reading document={document.data} />
      <Tabs label={document.data.name} tabs={tabs}>
        {(key) =>
          key === "about"
            ? <About agentId={agentId} document={document.data} />
            : <Passages agentId={agentId} document={document.data} />}
      </Tabs>
    </Page>
  );
}

function Actions({ agentId, document }: { agentId: string; document: Document }) {
  const { route } = useLocation();
  const texts = t().knowledge;
  const readAgain = useChange(() => reindex(agentId, document));
  const save = useChange(() => download(agentId, document));
  return (
    <>
      <Button busy={readAgain.isPending} onClick={() => readAgain.mutate()}>{texts.reindex}</Button>
      <Menu
        label={t().common.actions}
        icon={Ellipsis}
        items={[
          { label: texts.download, onSelect: () => save.mutate() },
          {
            label: texts.delete,
            isDanger: true,
            onSelect: () => {
              deleteDocument(agentId, document);
              route(href(`/knowledge/${agentId}`), true);
            },
          },
        ]}
      />
      <Problem error={readAgain.error ?? save.error} />
    </>
  );
}

// What goes on, or why it failed.
function Reading({ document }: { document: Document }) {
  const { status, progress } = document;
  const words = explain(document);
  if (status === "failed" || progress.is_stuck) {
    return (
      <p class={`note ${status === "failed" ? "bad" : "warn"}`} role="status" dir="auto">
        <span>{words || t().knowledge.stages.failed}</span>
      </p>
    );
  }
  if (!isWorking(document)) return null;
  const { passages_done, passages_total, share } = progress;
  return (
    <div class="reading" role="status">
      <span class="soft">
        {t().knowledge.stageAbout[progress.stage]}
        {passages_total !== null && passages_done !== null &&
          ` ${
            t().knowledge.passagesDone(formatNumber(passages_done), formatNumber(passages_total))
          }`}
        {progress.last_error && ` ${words}`}
      </span>
      {share !== null && <Progress value={share} max={1} label={words} />}
    </div>
  );
}

function About({ agentId, document }: { agentId: string; document: Document }) {
  const texts = t().knowledge;
  const path = { agent_id: agentId, document_id: document.id };
  return (
    <div class="split">
      <MetadataForm agentId={agentId} document={document} />
      <Card>
        <Facts
          rows={[
            [texts.id, <CopyText key="id" text={document.id} />],
            [texts.format, document.mime_type],
            [texts.size, formatSize(document.size_bytes)],
            [texts.passages, formatNumber(document.chunk_count)],
            [t().common.created, <Ago key="created" at={document.created_at} />],
            [texts.lastRead, <Ago key="read" at={document.processed_at} />],
            ...(document.source_url
              ? [[texts.address, <span key="url" dir="ltr">{document.source_url}</span>] as Fact]
              : []),
          ]}
        />
        <CopyButton
          kind="plain"
          text={toCurl("GET", DOCUMENT, { path })}
          label={t().common.copyCurl}
        />
      </Card>
    </div>
  );
}
