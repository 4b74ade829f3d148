import { CircleCheck, RotateCw } from "lucide-preact";

import { api, toCurl } from "../../api/client";
import { useChange, useList, useRead } from "../../api/queries";
import { may } from "../../api/session";
import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { CopyButton } from "../../ui/copy";
import { Filter } from "../../ui/field";
import { ListTable } from "../../ui/list";
import { Section } from "../../ui/page";
import { Ago, Badge } from "../../ui/small";
import { useFilters } from "../../ui/state";
import { Empty, Loaded, Problem } from "../../ui/states";
import { type Column } from "../../ui/table";
import { notify } from "../../ui/toast";
import { Queues } from "./queues";
import { WorkDialog } from "./work_item";

export const WORK = "/api/v1/work";
export const QUEUES = "/api/v1/work/queues";
export type WorkItem = Schemas["WorkView"];
const STATUSES = ["dead", "waiting", "running"] as const;
const REFRESH_MS = 10_000;

export function Work() {
  const queues = useRead(QUEUES, {}, { refetchInterval: REFRESH_MS });
  const texts = t().settings.work;
  return (
    <>
      <Section title={texts.queues} about={texts.queuesAbout}>
        <Loaded query={queues} rows={3}>{({ data }) => <Queues queues={data} />}</Loaded>
      </Section>
      <WorkList kinds={queues.data?.data.flatMap(({ kinds }) => kinds) ?? []} />
    </>
  );
}

function WorkList({ kinds }: { kinds: Schemas["KindLoad"][] }) {
  const [filters, setFilters] = useFilters();
  const texts = t().settings.work;
  const status = STATUSES.find((known) => known === filters.status) ?? "dead";
  const query = { status, kind: filters.kind, record_id: filters.record };
  const list = useList(WORK, { query }, { refetchInterval: REFRESH_MS });
  const isFiltered = Boolean(filters.kind || filters.record);
  return (
    <Section title={texts.title}>
      <div class="bar">
        <div class="filters">
          <Filter
            label={t().common.status}
            value={filters.status}
            all={texts.statuses.dead}
            choices={[["waiting", texts.statuses.waiting], ["running", texts.statuses.running]]}
            onChange={(value) => setFilters({ status: value })}
          />
          <Filter
            label={texts.kind}
            value={filters.kind}
            choices={kinds.map(({ kind, title }) => [kind, title])}
            onChange={(kind) => setFilters({ kind })}
          />
        </div>
        <div class="actions">
          <CopyButton text={toCurl("GET", WORK, { query })} label={t().common.copyCurl} />
          {status === "dead" && Boolean(list.rows?.some(({ can_retry }) => can_retry)) && (
            <RetryAll kind={filters.kind} record={filters.record} />
          )}
        </div>
      </div>
      <ListTable
        label={texts.title}
        list={list}
        columns={columns(status)}
        keyOf={({ id }) => id}
        onOpen={({ id }) => setFilters({ work: id })}
        onClear={isFiltered ? () => setFilters({ kind: undefined, record: undefined }) : undefined}
        empty={
          <Empty icon={CircleCheck} title={texts.emptyTitles[status]}>
            {status === "dead" ? texts.emptyAbout : ""}
          </Empty>
        }
      />
      {filters.work && (
        <WorkDialog
          key={filters.work}
          id={filters.work}
          listed={list.rows?.find(({ id }) => id === filters.work)}
          onClose={() => setFilters({ work: undefined })}
        />
      )}
    </Section>
  );
}

function RetryAll({ kind, record }: { kind: string | undefined; record: string | undefined }) {
  const texts = t().settings.work;
  const retry = useChange(
    () =>
      api.post("/api/v1/work/retry", {
        body: { ...(kind ? { kind } : {}), ...(record ? { record_id: record } : {}) },
      }),
    [WORK, QUEUES],
  );
  if (!may("work:write")) return null;
  // The button is gone once nothing is left to retry.
  const start = async () => {
    const answer = await retry.mutateAsync(undefined).catch(() => null);
    if (!answer) return;
    const { retried, dismissed, has_more } = answer;
    notify(texts.retriedMany(retried, dismissed) + (has_more ? ` ${texts.hasMore}` : ""));
  };
  return (
    <>
      <Button
        icon={RotateCw}
        busy={retry.isPending}
        onClick={start}
      >
        {texts.retryAll}
      </Button>
      <Problem error={retry.error} />
    </>
  );
}

function columns(status: (typeof STATUSES)[number]): Column<WorkItem>[] {
  const texts = t().settings.work;
  return [
    {
      key: "title",
      label: texts.kind,
      cell: ({ title, is_stuck }) => (
        <>
          {title}
          {is_stuck && (
            <>
              {" "}
              <Badge tone="warn">{texts.stuck}</Badge>
            </>
          )}
        </>
      ),
    },
    {
      key: "reason",
      label: texts.reason,
      isSecondary: true,
      cell: ({ error }) => <span class="soft">{error ?? "–"}</span>,
    },
    {
      key: "attempts",
      label: texts.attempts,
      width: "104px",
      isNumber: true,
      isSecondary: true,
      cell: ({ attempt, max_attempts }) => texts.attemptOf(attempt, max_attempts),
    },
    {
      key: "when",
      label: texts.when[status],
      width: "136px",
      cell: (work) => (
        <Ago
          at={status === "dead"
            ? work.finished_at ?? work.run_at
            : status === "running"
            ? work.started_at
            : work.run_at}
        />
      ),
    },
  ];
}
