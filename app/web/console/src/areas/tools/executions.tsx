// What a tool has done: its runs, and one of them beside the list.
import { useLocation } from "preact-iso";

import { toCurl } from "../../api/client";
import { useList, useRead } from "../../api/queries";
import { may } from "../../api/session";
import type { Query, Schemas } from "../../api/types";
import { href } from "../../base";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Json } from "../../ui/content";
import { CopyButton, CopyText } from "../../ui/copy";
import { DateFilter, momentOf } from "../../ui/date_filter";
import { Dialog } from "../../ui/dialog";
import { Filter } from "../../ui/field";
import { formatDuration, formatTime } from "../../ui/format";
import { ListTable } from "../../ui/list";
import { Facts } from "../../ui/page";
import { Ago, Badge, type Tone } from "../../ui/small";
import { useFilters } from "../../ui/state";
import { Empty, Loaded } from "../../ui/states";
import type { Column } from "../../ui/table";

type Execution = Schemas["ExecutionView"];
type Status = Execution["status"];

const LIST = "/v1/tools/{tool_id}/executions";
const ONE = "/v1/tools/{tool_id}/executions/{execution_id}";
const TONES: Record<Status, Tone> = {
  completed: "good",
  failed: "bad",
  timeout: "warn",
};

export function RunStatus({ status }: { status: Status }) {
  return <Badge tone={TONES[status]}>{t().tools.statuses[status]}</Badge>;
}

export function Executions({ id }: { id: string }) {
  const [filters, setFilters] = useFilters();
  const { status, from, to, execution } = filters;
  const list = useList(LIST, {
    path: { tool_id: id },
    query: {
      status: status as Query<typeof LIST>["status"],
      after: momentOf(from),
      before: momentOf(to, true),
    },
  });
  const texts = t().tools;
  const isFiltered = Boolean(status || from || to);
  return (
    <>
      <div class="filters">
        <Filter
          label={t().common.status}
          value={status}
          choices={Object.entries(texts.statuses)}
          onChange={(value) => setFilters({ status: value })}
        />
        <DateFilter
          label={texts.from}
          value={from}
          onChange={(value) => setFilters({ from: value })}
        />
        <DateFilter
          label={texts.to}
          value={to}
          onChange={(value) => setFilters({ to: value })}
        />
        <Button onClick={() => list.refetch()}>{texts.refresh}</Button>
      </div>
      <ListTable
        label={texts.executions}
        list={list}
        columns={columns()}
        keyOf={(row) => row.id}
        onOpen={(row) => setFilters({ execution: row.id })}
        onClear={isFiltered
          ? () => setFilters({ status: undefined, from: undefined, to: undefined })
          : undefined}
        empty={<Empty title={texts.noRuns}>{texts.noRunsAbout}</Empty>}
      />
      {execution && (
        <ExecutionDrawer
          key={execution}
          toolId={id}
          id={execution}
          onClose={() => setFilters({ execution: undefined })}
        />
      )}
    </>
  );
}

function columns(): Column<Execution>[] {
  const texts = t().tools;
  return [
    {
      key: "at",
      label: texts.when,
      width: "136px",
      cell: ({ executed_at }) => <Ago at={executed_at} />,
    },
    {
      key: "status",
      label: t().common.status,
      width: "136px",
      cell: ({ status }) => <RunStatus status={status} />,
    },
    {
      key: "time",
      label: texts.time,
      width: "96px",
      isNumber: true,
      isSecondary: true,
      cell: ({ execution_time_ms }) => formatDuration(execution_time_ms),
    },
    {
      key: "by",
      label: texts.by,
      width: "112px",
      isSecondary: true,
      cell: ({ agent_id }) => (agent_id ? texts.byAgent : texts.byRequest),
    },
    {
      key: "result",
      label: texts.result,
      isSecondary: true,
      cell: (row) => <code class="soft">{preview(row)}</code>,
    },
  ];
}

const PREVIEW = 200;

function preview({ error, output }: Execution): string {
  if (error) return error.message || error.code;
  return output === null || output === undefined ? "" : JSON.stringify(output).slice(0, PREVIEW);
}

function ExecutionDrawer(
  { toolId, id, onClose }: { toolId: string; id: string; onClose: () => void },
) {
  const path = { tool_id: toolId, execution_id: id };
  const query = useRead(ONE, { path });
  const { route } = useLocation();
  const texts = t().tools;
  return (
    <Dialog
      title={texts.execution}
      onClose={onClose}
      isDrawer
      actions={
        <>
          <CopyButton
            text={toCurl("GET", ONE, { path })}
            label={t().common.copyCurl}
          />
          {may("tools:execute") && query.data && (
            <Button
              onClick={() =>
                route(
                  href(`/tools/${toolId}`, { tab: "run", again: id }),
                  true,
                )}
            >
              {texts.runAgain}
            </Button>
          )}
        </>
      }
    >
      <Loaded query={query} rows={4}>
        {(
          {
            data: {
              executed_at,
              status,
              execution_time_ms,
              agent_id,
              input,
              output,
              error,
            },
          },
        ) => (
          <>
            <Facts
              rows={[
                [t().common.status, <RunStatus key="status" status={status} />],
                [texts.when, formatTime(executed_at)],
                [texts.time, formatDuration(execution_time_ms)],
                ["ID", <CopyText key="id" text={id} />],
                [
                  texts.by,
                  agent_id
                    ? (
                      <a key="agent" href={href(`/agents/${agent_id}`)}>
                        {agent_id}
                      </a>
                    )
                    : texts.byRequest,
                ],
              ]}
            />
            {error && (
              <div class="note bad">
                <span dir="auto">{error.message || error.code}</span>
                <code>{error.code}</code>
              </div>
            )}
            <h3>{texts.input}</h3>
            <Json value={input} label={texts.input} />
            <h3>{texts.output}</h3>
            <Json value={output} label={texts.output} />
          </>
        )}
      </Loaded>
    </Dialog>
  );
}
