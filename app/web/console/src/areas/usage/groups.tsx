import { t } from "../../texts";
import { formatCost, formatNumber, formatPercent } from "../../ui/format";
import { Section } from "../../ui/page";
import { useFilters } from "../../ui/state";
import { type Column, Table } from "../../ui/table";
import { measureOf, type Row, rowsOf, type Series, type Sums } from "./series";

// Each group with its share of the measure that the chart shows.
export function Groups({ series }: { series: Series }) {
  const [filters, setFilters] = useFilters();
  const texts = t().usage;
  const measure = measureOf(filters);
  const all = series.totals[measure] ?? 0;
  // Other groups cannot be filtered by.
  const filter = { agent: "agent", model: "model" }[series.group_by as string];
  const rows = rowsOf(series);
  const open = ({ id }: Row) => {
    if (filter && id) setFilters({ [filter]: id, group: filter === "agent" ? "model" : "agent" });
  };
  return (
    <Section
      title={texts.groups[series.group_by]}
      about={filter ? texts.groupsAbout : undefined}
    >
      <Table<Row>
        label={texts.groups[series.group_by]}
        rows={rows}
        keyOf={({ id, isOther }) => isOther ? "other" : id ?? "none"}
        {...(filter ? { onOpen: open } : {})}
        columns={[
          {
            key: "name",
            label: t().common.name,
            cell: (row) => (
              <>
                <span class={`swatch series-${rows.indexOf(row)}`} />
                {row.name}
              </>
            ),
          },
          {
            key: "share",
            label: texts.share(texts.measures[measure]),
            width: "180px",
            cell: ({ totals }) => <Share part={totals[measure] ?? 0} all={all} />,
          },
          figure("total_tokens", "112px"),
          figure("cost_usd", "104px"),
          figure("turns", "96px"),
          ...(series.totals.requests === null ? [] : [figure("requests", "104px")]),
          figure("conversations", "128px"),
        ]}
      />
    </Section>
  );
}

function figure(key: keyof Sums & keyof ReturnType<typeof t>["usage"]["measures"], width: string) {
  const column: Column<Row> = {
    key,
    label: t().usage.measures[key],
    width,
    isNumber: true,
    isSecondary: true,
    cell: ({ totals }) => {
      const value = totals[key];
      if (value === null) return "–";
      return key === "cost_usd" ? formatCost(value) : formatNumber(value);
    },
  };
  return column;
}

function Share({ part, all }: { part: number; all: number }) {
  return (
    <span class="share">
      <progress value={part} max={all || 1} aria-hidden="true" />
      <span class="number">{formatPercent(all ? part / all : 0)}</span>
    </span>
  );
}
