// What failed within the last week: answers, work, and what users are notified of.
import { useMemo } from "preact/hooks";

import { useRead } from "../../api/queries";
import { may } from "../../api/session";
import type { Query } from "../../api/types";
import { t } from "../../texts";

export interface Failure {
  id: string;
  kind: "answer" | "work" | "notice";
  title: string;
  reason: string;
  at: string;
  // The screen that says more.
  to: string | null;
}

const WEEK_MS = 7 * 24 * 3_600_000;
const HOUR_MS = 3_600_000;
const EACH = 5;
const SHOWN = 8;
const NOTICES = new Set([
  "workflow_failed",
  "webhook_disabled",
  "credential_invalid",
  "document_source",
  "storage_quota",
]);

export function useFailures() {
  // Of the hour, so that the answer is kept when somebody comes back.
  const from = useMemo(
    () => new Date(Math.floor((Date.now() - WEEK_MS) / HOUR_MS) * HOUR_MS).toISOString(),
    [],
  );
  const recent: Query<"/api/v1/conversations"> = { failed: true, from, limit: EACH };
  const canSeeWork = may("work:read");
  const answers = useRead("/api/v1/conversations", { query: recent });
  const work = useRead("/api/v1/work", { query: { status: "dead", per_page: EACH } }, {
    enabled: canSeeWork,
  });
  const notices = useRead("/api/v1/notifications", { query: { read: false, per_page: 20 } });
  const all = canSeeWork ? [answers, work, notices] : [answers, notices];
  const rows: Failure[] = [
    ...(answers.data?.data ?? []).map((row): Failure => ({
      id: row.id,
      kind: "answer",
      title: row.title || row.agent_name,
      reason: t().home.failedAnswers(row.failed_answers, row.agent_name),
      at: row.last_message_at,
      to: `/conversations/${row.id}`,
    })),
    ...(work.data?.data ?? []).map((row): Failure => ({
      id: row.id,
      kind: "work",
      title: row.title,
      reason: row.error ?? "",
      at: row.finished_at ?? row.run_at,
      to: `/settings?tab=work&work=${row.id}`,
    })),
    ...(notices.data?.data ?? [])
      .filter(({ type, created_at }) => NOTICES.has(type) && created_at >= from)
      .map((row): Failure => ({
        id: row.id,
        kind: "notice",
        title: row.title,
        reason: row.message,
        at: row.created_at,
        to: null,
      })),
  ];
  return {
    rows: rows.sort((one, other) => other.at.localeCompare(one.at)).slice(0, SHOWN),
    isLoading: all.some(({ data, error }) => !data && !error),
    errors: all.filter(({ data, error }) => error && !data).map(({ error }) => error),
    refetch: () => Promise.all(all.map((query) => query.refetch())),
  };
}
