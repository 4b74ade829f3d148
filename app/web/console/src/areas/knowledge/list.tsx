// The agents with what they know.
import { Library } from "lucide-preact";
import { useEffect, useState } from "preact/hooks";

import { useList } from "../../api/queries";
import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import { LinkButton } from "../../ui/button";
import { Filter, SearchField } from "../../ui/field";
import { formatNumber } from "../../ui/format";
import { ListTable } from "../../ui/list";
import { Page } from "../../ui/page";
import { Ago, Badge } from "../../ui/small";
import { useDelayed, useFilters } from "../../ui/state";
import { Empty } from "../../ui/states";
import type { Column } from "../../ui/table";
import { WORKING_MS } from "./types";

type Row = Schemas["AgentKnowledge"];

export function KnowledgeList() {
  const [filters, setFilters] = useFilters();
  const { search, sort } = useDelayed(filters);
  const [isBusy, setBusy] = useState(false);
  const list = useList("/api/v1/knowledge", { query: { search, sort: sort ?? "name" } }, {
    refetchInterval: isBusy && WORKING_MS,
  });
  const busy = list.rows?.some(({ documents }) => documents.working_count > 0) ?? false;
  useEffect(() => setBusy(busy), [busy]);
  const texts = t().knowledge;
  return (
    <Page title={t().rail.knowledge} about={texts.about}>
      <div class="filters">
        <SearchField
          value={filters.search ?? ""}
          onInput={(value) => setFilters({ search: value })}
        />
        <Filter
          label={t().common.order}
          value={filters.sort}
          all={t().common.name}
          choices={[["-created_at", t().common.newest]]}
          onChange={(value) => setFilters({ sort: value })}
        />
      </div>
      <ListTable
        label={t().rail.knowledge}
        list={list}
        columns={columns()}
        keyOf={({ id }) => id}
        linkOf={({ id }) => `/knowledge/${id}`}
        onClear={filters.search ? () => setFilters({ search: undefined }) : undefined}
        empty={
          <Empty
            icon={Library}
            title={texts.emptyTitle}
            action={
              <LinkButton kind="primary" to="/agents?new=1">{t().common.newAgent}</LinkButton>
            }
          >
            {texts.emptyAbout}
          </Empty>
        }
      />
    </Page>
  );
}

function columns(): Column<Row>[] {
  const texts = t().knowledge;
  return [
    { key: "name", label: texts.agent, cell: ({ name }) => name },
    {
      key: "state",
      label: t().common.status,
      width: "128px",
      cell: ({ documents }) => <Figures documents={documents} />,
    },
    {
      key: "documents",
      label: texts.tabs.documents,
      width: "112px",
      isNumber: true,
      isSecondary: true,
      cell: ({ documents }) => formatNumber(documents.count),
    },
    {
      key: "passages",
      label: texts.passages,
      width: "112px",
      isNumber: true,
      isSecondary: true,
      cell: ({ documents }) => formatNumber(documents.passage_count),
    },
    {
      key: "changed",
      label: texts.lastRead,
      width: "144px",
      isSecondary: true,
      cell: ({ documents }) => <Ago at={documents.changed_at} />,
    },
  ];
}

function Figures({ documents }: { documents: Row["documents"] }) {
  const { count, failed_count, working_count } = documents;
  const texts = t().knowledge;
  if (!count) return <span class="soft">{texts.knowsNothing}</span>;
  if (!failed_count && !working_count) return <Badge tone="good">{texts.statuses.ready}</Badge>;
  return (
    <span class="row">
      {failed_count > 0 && <Badge tone="bad">{texts.failedCount(failed_count)}</Badge>}
      {working_count > 0 && <Badge tone="accent">{texts.workingCount(working_count)}</Badge>}
    </span>
  );
}
