import { ChartColumn, X } from "lucide-preact";

import { toCurl } from "../../api/client";
import { useRead } from "../../api/queries";
import { may } from "../../api/session";
import { t } from "../../texts";
import { Button, LinkButton } from "../../ui/button";
import { ChartPart } from "../../ui/chart_part";
import { CopyButton } from "../../ui/copy";
import { DateFilter } from "../../ui/date_filter";
import { Filter } from "../../ui/field";
import { Card, Section } from "../../ui/page";
import { useFilters } from "../../ui/state";
import { Empty, Loaded } from "../../ui/states";
import { Figures } from "./figures";
import { Groups } from "./groups";
import {
  bucketNames,
  formatShort,
  GROUPS,
  isCustom,
  measureOf,
  MEASURES,
  PATH,
  PERIODS,
  queryOf,
  rowsOf,
  type Series,
  type Sums,
} from "./series";
import { UsageTiles } from "./tiles";

export function OverTime() {
  const [filters] = useFilters();
  const input = { query: queryOf(filters) };
  const query = useRead(PATH, input);
  return (
    <>
      <div class="bar">
        <UsageFilters />
        <CopyButton text={toCurl("GET", PATH, input)} label={t().common.copyCurl} />
      </div>
      <Narrowed />
      <Loaded query={query}>{(series) => <Report series={series} />}</Loaded>
    </>
  );
}

function UsageFilters() {
  const [filters, setFilters] = useFilters();
  const texts = t().usage;
  return (
    <div class="filters">
      <Filter
        label={texts.period}
        value={filters.period}
        all={texts.periods["30d"]}
        choices={[
          ...PERIODS.filter((key) => key !== "30d").map((key) =>
            [key, texts.periods[key]] as const
          ),
          ["custom", texts.periods.custom],
        ]}
        onChange={(period) => setFilters({ period, from: undefined, to: undefined })}
      />
      {isCustom(filters) && (
        <>
          <DateFilter
            label={texts.from}
            value={filters.from}
            onChange={(from) => setFilters({ from })}
          />
          <DateFilter label={texts.to} value={filters.to} onChange={(to) => setFilters({ to })} />
        </>
      )}
      <Filter
        label={texts.groupBy}
        value={filters.group}
        all={texts.groups.none}
        choices={GROUPS.map((key) => [key, texts.groups[key]])}
        onChange={(group) => setFilters({ group })}
      />
      <Filter
        label={texts.measure}
        value={filters.measure}
        all={texts.measures.cost_usd}
        choices={MEASURES.filter((key) => key !== "cost_usd").map((
          key,
        ) => [key, texts.measures[key]])}
        onChange={(measure) => setFilters({ measure })}
      />
    </div>
  );
}

// The agent or the model that everything below is of.
function Narrowed() {
  const [{ agent, model }, setFilters] = useFilters();
  const isKnown = Boolean(agent) && may("agents:read");
  const query = useRead("/api/v1/agents/{agent_id}", { path: { agent_id: agent ?? "" } }, {
    enabled: isKnown,
  });
  if (!agent && !model) return null;
  const name = [agent && (query.data?.name ?? agent), model].filter(Boolean).join(" · ");
  return (
    <p class="note">
      <span dir="auto">{t().usage.only(name)}</span>
      <Button icon={X} onClick={() => setFilters({ agent: undefined, model: undefined })}>
        {t().usage.showAll}
      </Button>
    </p>
  );
}

function isNothing({ requests, turns, total_tokens, cost_usd, conversations }: Sums): boolean {
  return ![requests, turns, total_tokens, cost_usd, conversations].some(Boolean);
}

function Report({ series }: { series: Series }) {
  const [filters] = useFilters();
  const texts = t().usage;
  if (isNothing(series.totals)) {
    return (
      <Empty
        icon={ChartColumn}
        title={texts.emptyTitle}
        action={may("agents:read") &&
          <LinkButton to="/agents" kind="primary">{texts.toAgents}</LinkButton>}
      >
        {texts.emptyAbout}
      </Empty>
    );
  }
  const measure = measureOf(filters);
  const rows = rowsOf(series).filter(({ values }) => values[measure] !== null);
  return (
    <>
      <UsageTiles totals={series.totals} />
      <Section title={texts.chartTitle(texts.measures[measure])}>
        <Card>
          {rows.length
            ? (
              <ChartPart
                label={texts.chartTitle(texts.measures[measure])}
                ticks={bucketNames(series, true)}
                names={bucketNames(series, false)}
                series={rows.map(({ name, values }) => ({
                  label: name,
                  values: values[measure] ?? [],
                }))}
                format={(value) => formatShort(measure, value)}
                all={texts.inAll}
              />
            )
            : <p class="soft">{texts.notCounted}</p>}
        </Card>
      </Section>
      {series.group_by !== "none" && <Groups series={series} />}
      <Figures series={series} measure={measure} />
    </>
  );
}
