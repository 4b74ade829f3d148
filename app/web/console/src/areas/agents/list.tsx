import { Bot, Plus } from "lucide-preact";

import { useList } from "../../api/queries";
import { may } from "../../api/session";
import type { Query, Schemas } from "../../api/types";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Filter, SearchField } from "../../ui/field";
import { ListTable } from "../../ui/list";
import { Page } from "../../ui/page";
import { Ago, Badge, type Tone } from "../../ui/small";
import { Empty } from "../../ui/states";
import { useDelayed, useFilters } from "../../ui/state";
import type { Column } from "../../ui/table";
import { NewAgent } from "./new_agent";

type Agent = Schemas["AgentSummary"];
type Filters = Query<"/api/v1/agents">;

const TONES: Record<Agent["status"], Tone> = {
  draft: "neutral",
  published: "good",
  archived: "warn",
};

export function AgentStatus({ status }: { status: Agent["status"] }) {
  return <Badge tone={TONES[status]}>{t().agents.statuses[status]}</Badge>;
}

export function AgentList() {
  const [filters, setFilters] = useFilters();
  const { search, status } = useDelayed(filters);
  const list = useList("/api/v1/agents", {
    query: { search, status: status as Filters["status"], sort: filters.sort },
  });
  const isFiltered = Boolean(filters.search || filters.status);
  const texts = t().agents;
  const create = may("agents:write") && (
    <Button
      kind="primary"
      icon={Plus}
      onClick={() => setFilters({ new: "1" })}
    >
      {t().common.newAgent}
    </Button>
  );
  return (
    <Page title={t().rail.agents} actions={create}>
      <div class="filters">
        <SearchField
          value={filters.search ?? ""}
          onInput={(value) => setFilters({ search: value })}
        />
        <Filter
          label={t().common.status}
          value={filters.status}
          choices={Object.entries(texts.statuses)}
          onChange={(value) => setFilters({ status: value })}
        />
        <Filter
          label={t().common.order}
          value={filters.sort}
          all={t().common.newest}
          choices={[["name", t().common.name], ["-updated_at", t().common.changed]]}
          onChange={(value) => setFilters({ sort: value })}
        />
      </div>
      <ListTable
        label={t().rail.agents}
        list={list}
        columns={listColumns()}
        keyOf={({ id }) => id}
        linkOf={({ id }) => `/agents/${id}`}
        onClear={isFiltered
          ? () => setFilters({ search: undefined, status: undefined })
          : undefined}
        empty={
          <Empty icon={Bot} title={texts.emptyTitle} action={create}>{texts.emptyAbout}</Empty>
        }
      />
      {filters.new && <NewAgent onClose={() => setFilters({ new: undefined })} />}
    </Page>
  );
}

function listColumns(): Column<Agent>[] {
  const texts = t().agents;
  return [
    { key: "name", label: t().common.name, cell: ({ name }) => name },
    {
      key: "description",
      label: t().common.description,
      isSecondary: true,
      cell: ({ description }) => <span class="soft">{description}</span>,
    },
    { key: "model", label: texts.model, isSecondary: true, cell: (row) => row.primary_model },
    {
      key: "status",
      label: t().common.status,
      width: "120px",
      cell: ({ status }) => <AgentStatus status={status} />,
    },
    {
      key: "changed",
      label: t().common.changed,
      width: "136px",
      isSecondary: true,
      cell: ({ updated_at }) => <Ago at={updated_at} />,
    },
  ];
}
