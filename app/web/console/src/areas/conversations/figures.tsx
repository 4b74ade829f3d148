import { useRead } from "../../api/queries";
import { t } from "../../texts";
import { formatCompact, formatDuration, formatNumber } from "../../ui/format";
import { Tile, Tiles } from "../../ui/page";
import { Problem } from "../../ui/states";

// The last 30 days of the agent that the list is filtered by.
export function AgentFigures({ id }: { id: string }) {
  const query = useRead("/api/v1/agents/{agent_id}/stats", {
    path: { agent_id: id },
    query: { period: "30d" },
  });
  const texts = t().conversations;
  const stats = query.data;
  if (query.error) return <Problem error={query.error} />;
  return (
    <section class="figures" aria-label={texts.figures}>
      <Tiles>
        <Tile
          label={t().rail.conversations}
          value={stats ? formatCompact(stats.total_conversations) : "–"}
          hint={texts.lastDays}
        />
        <Tile
          label={texts.messages}
          value={stats ? formatCompact(stats.total_messages) : "–"}
          hint={stats && texts.tokens(formatCompact(stats.total_tokens_used))}
        />
        <Tile
          label={texts.responseTime}
          value={stats?.total_messages ? formatDuration(stats.avg_response_time_ms) : "–"}
          hint={texts.onAverage}
        />
        <Tile
          label={texts.filters.failed}
          value={stats ? formatNumber(stats.failed_turns) : "–"}
          hint={texts.answers}
        />
        <Tile
          label={texts.filters.rating}
          value={stats
            ? `${formatNumber(stats.ratings_up)} / ${formatNumber(stats.ratings_down)}`
            : "–"}
          hint={texts.goodAndBad}
        />
      </Tiles>
    </section>
  );
}
