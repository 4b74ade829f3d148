import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

import { api, toCurl } from "../../api/client";
import { useChange, useRead } from "../../api/queries";
import { may } from "../../api/session";
import { BASE } from "../../base";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { CopyButton, CopyText } from "../../ui/copy";
import { Dialog } from "../../ui/dialog";
import { Facts } from "../../ui/page";
import { Ago } from "../../ui/small";
import { Loaded, Problem } from "../../ui/states";
import { notify } from "../../ui/toast";
import { QUEUES, WORK, type WorkItem } from "./work";

const ITEM = "/api/v1/work/{work_id}";

// Of the list, or of a link to work that the list does not show.
export function WorkDialog(
  { id, listed, onClose }: { id: string; listed: WorkItem | undefined; onClose: () => void },
) {
  // It leaves the list when it is retried.
  const last = useRef(listed);
  const query = useRead(ITEM, { path: { work_id: id } }, { enabled: !(listed ?? last.current) });
  const work = last.current = listed ?? query.data ?? last.current;
  if (work) return <OpenWork work={work} onClose={onClose} />;
  return (
    <Dialog title={t().settings.work.title} isDrawer onClose={onClose}>
      {query.error?.status === 404
        ? <p>{t().settings.work.gone}</p>
        : <Loaded query={query}>{() => null}</Loaded>}
    </Dialog>
  );
}

function OpenWork({ work, onClose }: { work: WorkItem; onClose: () => void }) {
  const texts = t().settings.work;
  const path = { work_id: work.id };
  const retry = useChange(() => api.post("/api/v1/work/{work_id}/retry", { path }), [WORK, QUEUES]);
  const dismiss = useChange(() => api.delete("/api/v1/work/{work_id}", { path }), [WORK, QUEUES]);
  const finish = (text: string) => {
    onClose();
    notify(text);
  };
  const canChange = may("work:write") && work.status === "dead";
  return (
    <Dialog
      title={work.title}
      isDrawer
      onClose={onClose}
      actions={canChange && (
        <>
          {work.can_retry && (
            <CopyButton
              kind="plain"
              text={toCurl("POST", "/api/v1/work/{work_id}/retry", { path })}
              label={t().common.copyCurl}
            />
          )}
          <Button
            busy={dismiss.isPending}
            onClick={() => dismiss.mutate(undefined, { onSuccess: () => finish(texts.dismissed) })}
          >
            {texts.dismiss}
          </Button>
          {work.can_retry && (
            <Button
              kind="primary"
              busy={retry.isPending}
              onClick={() => retry.mutate(undefined, { onSuccess: () => finish(texts.retried) })}
            >
              {texts.retry}
            </Button>
          )}
        </>
      )}
    >
      {work.error && (
        <div class="stack">
          <h3>{texts.reason}</h3>
          <pre class="code" tabIndex={0} dir="auto">{work.error}</pre>
        </div>
      )}
      {work.instead && (
        <p class="note warn">
          <span dir="auto">{texts.instead} {work.instead}</span>
        </p>
      )}
      {canChange && <p class="soft">{texts.dismissAbout}</p>}
      <Problem error={retry.error ?? dismiss.error} />
      <Facts rows={factsOf(work)} />
    </Dialog>
  );
}

function factsOf(work: WorkItem): [string, ComponentChildren][] {
  const texts = t().settings.work;
  const id = (text: string | null) => text ? <CopyText text={text} /> : "–";
  const trace = `${BASE}/trace/${encodeURIComponent(work.correlation_id)}`;
  return [
    [t().common.status, texts.statuses[work.status]],
    [texts.attempts, texts.attemptOf(work.attempt, work.max_attempts)],
    [texts.queue, work.queue],
    [texts.accepted, <Ago key="accepted" at={work.created_at} />],
    [texts.started, <Ago key="started" at={work.started_at} />],
    ...(work.status === "dead"
      ? [[texts.ended, <Ago key="ended" at={work.finished_at} />] as [string, ComponentChildren]]
      : []),
    ...(work.status === "waiting"
      ? [[texts.due, <Ago key="due" at={work.run_at} />] as [string, ComponentChildren]]
      : []),
    ...(work.status === "running"
      ? [[texts.seen, <Ago key="seen" at={work.last_seen_at} />] as [string, ComponentChildren]]
      : []),
    [texts.record, id(work.record_id)],
    [texts.kindName, <code key="kind">{work.kind}</code>],
    [texts.id, id(work.id)],
    [
      texts.trace,
      <a key="trace" href={trace} target="_blank" rel="noreferrer">{texts.openTrace}</a>,
    ],
  ];
}
