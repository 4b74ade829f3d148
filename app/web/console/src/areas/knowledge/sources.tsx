// Addresses from which documents are fetched, and fetched again when they change.
import { Ellipsis, Globe, Plus } from "lucide-preact";
import { useEffect, useState } from "preact/hooks";

import { api } from "../../api/client";
import { useChange, useList } from "../../api/queries";
import type { Query } from "../../api/types";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Filter, SearchField } from "../../ui/field";
import { formatNumber } from "../../ui/format";
import { ListTable } from "../../ui/list";
import { Menu } from "../../ui/menu";
import { Section } from "../../ui/page";
import { Ago, Badge, type Tone } from "../../ui/small";
import { useDelayed, useFilters } from "../../ui/state";
import { Empty, Problem } from "../../ui/states";
import type { Column } from "../../ui/table";
import { deleteLater, failure, leaving } from "./deletion";
import { NewSource } from "./new_source";
import { SourceDrawer } from "./source";
import { refreshDocuments, SOURCE, type Source, SOURCES, WORKING_MS } from "./types";

const TONES: Record<Source["status"], Tone> = {
  pending: "accent",
  syncing: "accent",
  ready: "good",
  review: "warn",
  retrying: "warn",
  failed: "bad",
};

export function SourceBadge({ status }: { status: Source["status"] }) {
  return <Badge tone={TONES[status]}>{t().knowledge.sourceStatuses[status]}</Badge>;
}

export function Sources({ agentId }: { agentId: string }) {
  const [filters, setFilters] = useFilters();
  const { search, status } = useDelayed(filters);
  const list = useSources(agentId, { search, status: status as Source["status"] | undefined });
  const texts = t().knowledge;
  const isFiltered = Boolean(filters.search || filters.status);
  const rows = list.rows?.filter(({ id }) => !leaving.value.has(id));
  const create = (
    <Button kind="primary" icon={Plus} onClick={() => setFilters({ new: "1" })}>
      {texts.newSource}
    </Button>
  );
  const open = rows?.find(({ id }) => id === filters.open);
  return (
    <Section about={texts.sourcesAbout} {...(rows?.length ? { actions: create } : {})}>
      {(isFiltered || (rows?.length ?? 0) > 0) && (
        <div class="filters">
          <SearchField
            value={filters.search ?? ""}
            onInput={(value) => setFilters({ search: value })}
          />
          <Filter
            label={t().common.status}
            value={filters.status}
            choices={Object.entries(texts.sourceStatuses)}
            onChange={(value) => setFilters({ status: value })}
          />
        </div>
      )}
      <Problem error={failure.value} />
      <ListTable
        label={texts.tabs.sources}
        list={{ ...list, rows }}
        columns={columns()}
        keyOf={({ id }) => id}
        onOpen={({ id }) => setFilters({ open: id })}
        actionsOf={(row) => <SourceMenu agentId={agentId} row={row} />}
        onClear={isFiltered
          ? () => setFilters({ search: undefined, status: undefined })
          : undefined}
        empty={
          <Empty icon={Globe} title={texts.noSources} action={create}>{texts.noSourcesAbout}</Empty>
        }
      />
      {filters.new && (
        <NewSource
          agentId={agentId}
          onClose={() => setFilters({ new: undefined })}
        />
      )}
      {open && (
        <SourceDrawer
          agentId={agentId}
          source={open}
          onClose={() => setFilters({ open: undefined })}
        />
      )}
    </Section>
  );
}

// Asks again and again while something is fetched.
function useSources(agentId: string, query: Query<typeof SOURCES>) {
  const [isBusy, setBusy] = useState(false);
  const list = useList(SOURCES, { path: { agent_id: agentId }, query }, {
    refetchInterval: isBusy && WORKING_MS,
  });
  const busy = list.rows?.some(({ status }) => status === "pending" || status === "syncing");
  useEffect(() => {
    if (isBusy && !busy) void refreshDocuments();
    setBusy(busy ?? false);
  }, [busy]);
  return list;
}

export function useSync(agentId: string, sourceId: string) {
  const path = { agent_id: agentId, source_id: sourceId };
  return useChange(
    () => api.post("/api/v1/agents/{agent_id}/sources/{source_id}/sync", { path }),
    [SOURCES],
  );
}

export function deleteSource(agentId: string, { id, name }: Source): void {
  deleteLater(id, name, async () => {
    await api.delete(SOURCE, { path: { agent_id: agentId, source_id: id } });
    await refreshDocuments();
  });
}

function SourceMenu({ agentId, row }: { agentId: string; row: Source }) {
  const sync = useSync(agentId, row.id);
  const texts = t().knowledge;
  return (
    <Menu
      label={texts.actionsOf(row.name)}
      icon={Ellipsis}
      items={[
        {
          label: texts.syncNow,
          onSelect: () =>
            sync.mutate(undefined, { onError: (error) => void (failure.value = error) }),
        },
        { label: texts.deleteSource, isDanger: true, onSelect: () => deleteSource(agentId, row) },
      ]}
    />
  );
}

function columns(): Column<Source>[] {
  const texts = t().knowledge;
  return [
    { key: "name", label: t().common.name, cell: ({ name }) => name },
    {
      key: "type",
      label: texts.sourceType,
      width: "144px",
      isSecondary: true,
      cell: ({ type }) => texts.sourceTypes[type],
    },
    {
      key: "status",
      label: t().common.status,
      width: "128px",
      cell: ({ status, error }) => (
        <div class="reading">
          <span>
            <SourceBadge status={status} />
          </span>
          {error && <span class="problem" title={error} dir="auto">{error}</span>}
        </div>
      ),
    },
    {
      key: "documents",
      label: texts.tabs.documents,
      width: "112px",
      isNumber: true,
      isSecondary: true,
      cell: ({ document_count }) => formatNumber(document_count),
    },
    {
      key: "schedule",
      label: texts.schedule,
      width: "112px",
      isSecondary: true,
      cell: ({ schedule }) => texts.schedules[schedule],
    },
    {
      key: "synced",
      label: texts.lastSync,
      width: "136px",
      isSecondary: true,
      cell: ({ last_synced_at }) => <Ago at={last_synced_at} />,
    },
  ];
}
