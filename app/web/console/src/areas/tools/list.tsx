import { Plus, Wrench } from "lucide-preact";

import { useList } from "../../api/queries";
import { may } from "../../api/session";
import type { Query, Schemas } from "../../api/types";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Filter, SearchField } from "../../ui/field";
import { formatNumber } from "../../ui/format";
import { ListTable } from "../../ui/list";
import { Page } from "../../ui/page";
import { Ago, Badge } from "../../ui/small";
import { useDelayed, useFilters } from "../../ui/state";
import { Empty, Problem } from "../../ui/states";
import type { Column } from "../../ui/table";
import { failure, leaving } from "./deletion";
import { ChooseType } from "./new_tool";

type Row = Schemas["ToolSummary"];
type Filters = Query<"/v1/tools">;

export function ToolState({ isEnabled }: { isEnabled: boolean }) {
  const texts = t().tools;
  return isEnabled
    ? <Badge tone="good">{texts.states.enabled}</Badge>
    : <Badge>{texts.states.disabled}</Badge>;
}

export function ToolList() {
  const [filters, setFilters] = useFilters();
  const { search, type, category, state, sort } = useDelayed(filters);
  const list = useList("/v1/tools", {
    query: {
      search,
      tool_type: type as Filters["tool_type"],
      category: category as Filters["category"],
      is_enabled: state ? state === "enabled" : undefined,
      sort,
    },
  });
  const texts = t().tools;
  const isFiltered = ["search", "type", "category", "state"].some((name) => filters[name]);
  const create = may("tools:write") && (
    <Button
      kind="primary"
      icon={Plus}
      onClick={() => setFilters({ new: "1" })}
    >
      {t().common.newTool}
    </Button>
  );
  const rows = list.rows?.filter(({ id }) => !leaving.value.has(id));
  return (
    <Page title={t().rail.tools} actions={create}>
      <ToolFilters />
      <Problem error={failure.value} />
      <ListTable
        label={t().rail.tools}
        list={{ ...list, rows }}
        columns={columns()}
        keyOf={({ id }) => id}
        linkOf={({ id }) => `/tools/${id}`}
        onClear={isFiltered
          ? () =>
            setFilters({
              search: undefined,
              type: undefined,
              category: undefined,
              state: undefined,
            })
          : undefined}
        empty={
          <Empty icon={Wrench} title={texts.emptyTitle} action={create}>
            {texts.emptyAbout}
          </Empty>
        }
      />
      {filters.new && <ChooseType onClose={() => setFilters({ new: undefined })} />}
    </Page>
  );
}

function ToolFilters() {
  const [filters, setFilters] = useFilters();
  const texts = t().tools;
  return (
    <div class="filters">
      <SearchField
        value={filters.search ?? ""}
        onInput={(search) => setFilters({ search })}
      />
      <Filter
        label={texts.type}
        value={filters.type}
        choices={Object.entries(t().toolTypes)}
        onChange={(type) => setFilters({ type })}
      />
      <Filter
        label={texts.category}
        value={filters.category}
        choices={Object.entries(texts.categories)}
        onChange={(category) => setFilters({ category })}
      />
      <Filter
        label={t().common.status}
        value={filters.state}
        choices={Object.entries(texts.states)}
        onChange={(state) => setFilters({ state })}
      />
      <Filter
        label={t().common.order}
        value={filters.sort}
        all={t().common.newest}
        choices={[
          ["name", t().common.name],
          ["-usage_count", texts.mostUsed],
          ["-last_used_at", texts.lastUsed],
        ]}
        onChange={(sort) => setFilters({ sort })}
      />
    </div>
  );
}

function columns(): Column<Row>[] {
  const texts = t().tools;
  return [
    { key: "name", label: t().common.name, cell: ({ name }) => name },
    {
      key: "type",
      label: texts.type,
      width: "148px",
      isSecondary: true,
      cell: (row) => t().toolTypes[row.tool_type],
    },
    {
      key: "category",
      label: texts.category,
      width: "136px",
      isSecondary: true,
      cell: ({ category }) => texts.categories[category],
    },
    {
      key: "state",
      label: t().common.status,
      width: "112px",
      cell: ({ is_enabled }) => <ToolState isEnabled={is_enabled} />,
    },
    {
      key: "runs",
      label: texts.runs,
      width: "96px",
      isNumber: true,
      isSecondary: true,
      cell: ({ usage_count }) => formatNumber(usage_count),
    },
    {
      key: "used",
      label: texts.lastUsed,
      width: "144px",
      isSecondary: true,
      cell: ({ last_used_at }) => <Ago at={last_used_at} />,
    },
  ];
}
