import { useRead } from "../../api/queries";
import type { Query, Schemas } from "../../api/types";
import { t } from "../../texts";
import { Filter } from "../../ui/field";
import { formatDay, formatDuration, formatNumber, formatPercent } from "../../ui/format";
import { Section, Tile, Tiles } from "../../ui/page";
import { useFilters } from "../../ui/state";
import { Loaded } from "../../ui/states";
import { Table } from "../../ui/table";

type Stats = Schemas["ToolStats"];
type Day = Stats["daily_breakdown"][number];

const PATH = "/v1/tools/{tool_id}/stats";

export function Statistics({ id }: { id: string }) {
  const [{ period }, setFilters] = useFilters();
  const texts = t().tools;
  const query = useRead(PATH, {
    path: { tool_id: id },
    query: { period: period as Query<typeof PATH>["period"] },
  });
  return (
    <>
      <div class="filters">
        <Filter
          label={texts.period}
          value={period}
          all={texts.periods["7d"]}
          choices={Object.entries(texts.periods).filter(([key]) => key !== "7d")}
          onChange={(value) => setFilters({ period: value })}
        />
      </div>
      <Loaded query={query}>{({ data }) => <Figures stats={data} />}</Loaded>
    </>
  );
}

function Figures({ stats }: { stats: Stats }) {
  const texts = t().tools;
  const {
    total_executions: total,
    failed,
    success_rate,
    avg_execution_time_ms: average,
  } = stats;
  return (
    <>
      <Tiles>
        <Tile label={texts.runs} value={formatNumber(total)} />
        <Tile label={texts.failedRuns} value={formatNumber(failed)} />
        <Tile
          label={texts.successRate}
          value={total ? formatPercent(success_rate / 100) : "–"}
        />
        <Tile
          label={texts.averageTime}
          value={total ? formatDuration(average) : "–"}
          hint={total
            ? texts.slowest(
              formatDuration(stats.p95_execution_time_ms),
              formatDuration(stats.p99_execution_time_ms),
            )
            : undefined}
        />
      </Tiles>
      <Section title={texts.runsByDay}>
        <Bars days={stats.daily_breakdown} />
      </Section>
      {stats.top_agents.length > 0 && (
        <Section title={texts.topAgents}>
          <Table
            label={texts.topAgents}
            rows={stats.top_agents}
            keyOf={({ agent_id }) => agent_id}
            linkOf={({ agent_id }) => `/agents/${agent_id}`}
            columns={[
              {
                key: "agent",
                label: t().common.name,
                cell: ({ agent_name, agent_id }) => agent_name || agent_id,
              },
              {
                key: "runs",
                label: texts.runs,
                width: "120px",
                isNumber: true,
                cell: ({ executions }) => formatNumber(executions),
              },
            ]}
          />
        </Section>
      )}
    </>
  );
}

const HEIGHT = 96;

// One bar per day; the failed runs are its lower part.
function Bars({ days }: { days: Day[] }) {
  const most = Math.max(1, ...days.map(({ executions }) => executions));
  const scale = (value: number) => (value / most) * (HEIGHT - 2);
  const texts = t().tools;
  const first = days[0];
  const last = days.at(-1);
  return (
    <div class="card">
      <svg
        class="bars"
        viewBox={`0 0 ${days.length * 10} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={texts.runsByDay}
      >
        {days.map(({ date, executions, failures }, index) => (
          <g key={date}>
            <title>
              {texts.day(
                formatDay(date),
                formatNumber(executions),
                formatNumber(failures),
              )}
            </title>
            <rect
              x={index * 10}
              y={0}
              width={10}
              height={HEIGHT}
              fill-opacity={0}
            />
            <rect
              x={index * 10 + 1}
              y={HEIGHT - Math.max(1, scale(executions))}
              width={8}
              height={Math.max(1, scale(executions))}
            />
            <rect
              class="bad"
              x={index * 10 + 1}
              y={HEIGHT - scale(failures)}
              width={8}
              height={scale(failures)}
            />
          </g>
        ))}
      </svg>
      <div class="row between soft">
        <span>{first && formatDay(first.date)}</span>
        <span>{last && formatDay(last.date)}</span>
      </div>
    </div>
  );
}
