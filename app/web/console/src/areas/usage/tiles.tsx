import { t } from "../../texts";
import { formatCompact, formatCost, formatNumber } from "../../ui/format";
import { Tile, Tiles } from "../../ui/page";
import type { Sums } from "./series";

export function UsageTiles({ totals, to }: { totals: Sums; to?: string }) {
  const texts = t().usage;
  const { requests, turns, prompt_tokens, completion_tokens, total_tokens } = totals;
  const link = to ? { to } : {};
  return (
    <Tiles>
      <Tile
        {...link}
        label={texts.measures.total_tokens}
        value={formatCompact(total_tokens)}
        hint={texts.inOut(formatCompact(prompt_tokens), formatCompact(completion_tokens))}
      />
      <Tile {...link} label={texts.measures.cost_usd} value={formatCost(totals.cost_usd)} />
      <Tile {...link} label={texts.measures.turns} value={formatNumber(turns)} />
      {requests !== null && (
        <Tile {...link} label={texts.measures.requests} value={formatCompact(requests)} />
      )}
      <Tile
        {...link}
        label={texts.measures.conversations}
        value={formatNumber(totals.conversations)}
      />
    </Tiles>
  );
}
