// The documents of an agent, with what is being read.
import { Ellipsis } from "lucide-preact";
import { useEffect, useState } from "preact/hooks";

import { api } from "../../api/client";
import { toProblem } from "../../api/problem";
import { useChange, useList, useRead } from "../../api/queries";
import type { Query } from "../../api/types";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Filter, SearchField } from "../../ui/field";
import { formatNumber, formatSize } from "../../ui/format";
import { ListTable } from "../../ui/list";
import { Menu } from "../../ui/menu";
import { Ago } from "../../ui/small";
import { useDelayed, useFilters } from "../../ui/state";
import { Problem } from "../../ui/states";
import type { Column } from "../../ui/table";
import { notify } from "../../ui/toast";
import { failure, leaving } from "./deletion";
import { deleteDocument, download, reindex } from "./document_actions";
import { DocumentState } from "./document_state";
import { DropZone } from "./drop_zone";
import { type Document, DOCUMENTS, isWorking, refreshDocuments, STATUS, WORKING_MS } from "./types";

type Filters = Query<typeof DOCUMENTS>;

export function Documents({ agentId }: { agentId: string }) {
  const [filters, setFilters] = useFilters();
  const { search, status, visibility, sort } = useDelayed(filters);
  const list = useDocuments(agentId, {
    search,
    status: status as Filters["status"],
    visibility: visibility as Filters["visibility"],
    sort,
    source_id: filters.source,
  });
  const isFiltered = ["search", "status", "visibility", "source"].some((name) => filters[name]);
  const clear = () =>
    setFilters({ search: undefined, status: undefined, visibility: undefined, source: undefined });
  const texts = t().knowledge;
  const [problem, setProblem] = useState<unknown>(null);
  const rows = list.rows?.filter(({ id }) => !leaving.value.has(id));
  const isEmpty = !isFiltered && rows?.length === 0;
  return (
    <DropZone agentId={agentId} isFirst={isEmpty}>
      <FailedNote agentId={agentId} />
      {!isEmpty && <DocumentFilters />}
      <Problem error={problem ?? failure.value} />
      <ListTable
        label={texts.tabs.documents}
        list={{ ...list, rows }}
        columns={columns()}
        keyOf={({ id }) => id}
        linkOf={({ id }) => `/knowledge/${agentId}/${id}`}
        actionsOf={(row) => <RowMenu agentId={agentId} row={row} onProblem={setProblem} />}
        onClear={isFiltered ? clear : undefined}
        empty={null}
      />
    </DropZone>
  );
}

// Asks again and again while something is being read.
function useDocuments(agentId: string, query: Filters) {
  const [isBusy, setBusy] = useState(false);
  const list = useList(DOCUMENTS, { path: { agent_id: agentId }, query }, {
    refetchInterval: isBusy && WORKING_MS,
  });
  // What is read may not be among the rows that the filters show.
  const status = useRead(STATUS, { path: { agent_id: agentId } }, {
    refetchInterval: isBusy && WORKING_MS,
  });
  const busy = status.data?.training.status === "training" || (list.rows?.some(isWorking) ?? false);
  useEffect(() => {
    // The figures of the agent have changed when the last document is read.
    if (isBusy && !busy) void refreshDocuments();
    setBusy(busy);
  }, [busy]);
  return list;
}

// How many failed, in whatever part of the list, and a way to read them again.
function FailedNote({ agentId }: { agentId: string }) {
  const path = { agent_id: agentId };
  const [, setFilters] = useFilters();
  const failed = useRead(DOCUMENTS, { path, query: { status: "failed", per_page: 1 } });
  const retry = useChange(
    () => api.post("/api/v1/agents/{agent_id}/documents/retry-failed", { path }),
    [DOCUMENTS, STATUS],
  );
  const total = failed.data?.pagination.total ?? 0;
  const texts = t().knowledge;
  if (!total) return null;
  return (
    <>
      <div class="note bad">
        <span>{texts.failed(total)}</span>
        <Button onClick={() => setFilters({ status: "failed" })}>{texts.showFailed}</Button>
        <Button
          busy={retry.isPending}
          onClick={() =>
            retry.mutate(undefined, {
              onSuccess: ({ retried, not_stored }) =>
                notify(
                  `${texts.retried(retried)}${not_stored ? ` ${texts.notStored(not_stored)}` : ""}`,
                ),
            })}
        >
          {texts.retryFailed}
        </Button>
      </div>
      <Problem error={retry.error} />
    </>
  );
}

function DocumentFilters() {
  const [filters, setFilters] = useFilters();
  const texts = t().knowledge;
  return (
    <div class="filters">
      <SearchField
        value={filters.search ?? ""}
        onInput={(search) => setFilters({ search })}
      />
      <Filter
        label={t().common.status}
        value={filters.status}
        choices={Object.entries(texts.statuses)}
        onChange={(status) => setFilters({ status })}
      />
      <Filter
        label={texts.visibility}
        value={filters.visibility}
        choices={Object.entries(texts.visibilities)}
        onChange={(visibility) => setFilters({ visibility })}
      />
      <Filter
        label={t().common.order}
        value={filters.sort}
        all={t().common.newest}
        choices={[
          ["name", t().common.name],
          ["-size_bytes", texts.largest],
          ["-chunk_count", texts.mostPassages],
          ["-processed_at", texts.lastRead],
        ]}
        onChange={(sort) => setFilters({ sort })}
      />
    </div>
  );
}

function RowMenu(
  { agentId, row, onProblem }: {
    agentId: string;
    row: Document;
    onProblem: (problem: unknown) => void;
  },
) {
  const texts = t().knowledge;
  const attempt = (action: () => Promise<void>) => () => {
    onProblem(null);
    action().catch((error: unknown) => onProblem(toProblem(error)));
  };
  return (
    <Menu
      label={texts.actionsOf(row.name)}
      icon={Ellipsis}
      items={[
        { label: texts.reindex, onSelect: attempt(() => reindex(agentId, row)) },
        { label: texts.download, onSelect: attempt(() => download(agentId, row)) },
        { label: texts.delete, isDanger: true, onSelect: () => deleteDocument(agentId, row) },
      ]}
    />
  );
}

function columns(): Column<Document>[] {
  const texts = t().knowledge;
  return [
    { key: "name", label: t().common.name, cell: ({ name }) => name },
    {
      key: "status",
      label: t().common.status,
      cell: (row) => <DocumentState document={row} />,
    },
    {
      key: "visibility",
      label: texts.visibility,
      width: "104px",
      isSecondary: true,
      cell: ({ visibility }) => texts.visibilities[visibility],
    },
    {
      key: "size",
      label: texts.size,
      width: "96px",
      isNumber: true,
      isSecondary: true,
      cell: ({ size_bytes }) => formatSize(size_bytes),
    },
    {
      key: "passages",
      label: texts.passages,
      width: "96px",
      isNumber: true,
      isSecondary: true,
      cell: ({ chunk_count }) => formatNumber(chunk_count),
    },
    {
      key: "changed",
      label: t().common.changed,
      width: "136px",
      isSecondary: true,
      cell: ({ processed_at, created_at }) => <Ago at={processed_at ?? created_at} />,
    },
  ];
}
