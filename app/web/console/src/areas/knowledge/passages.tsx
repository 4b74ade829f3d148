// The passages of a document, page by page. One opens in full at a click.
import { useList } from "../../api/queries";
import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { LongText } from "../../ui/content";
import { formatNumber } from "../../ui/format";
import { Empty, Failure, Skeleton } from "../../ui/states";
import { CHUNKS, type Document } from "./types";

type Chunk = Schemas["ChunkView"];

// Where in its document a passage stands.
export function placeOf(
  { page, row, heading }: Pick<Chunk, "page" | "row" | "heading">,
): string {
  const texts = t().knowledge;
  const parts = [
    heading,
    page !== null && texts.page(formatNumber(page)),
    row !== null && texts.row(formatNumber(row)),
  ];
  return parts.filter(Boolean).join(" · ");
}

export function Passages({ agentId, document }: { agentId: string; document: Document }) {
  const path = { agent_id: agentId, document_id: document.id };
  const list = useList(CHUNKS, { path });
  const texts = t().knowledge;
  if (!list.rows) {
    return list.error ? <Failure error={list.error} onRetry={list.refetch} /> : <Skeleton />;
  }
  if (!list.rows.length) {
    return <Empty title={texts.noPassages}>{texts.noPassagesAbout[document.status]}</Empty>;
  }
  return (
    <>
      <ol class="passages" aria-label={texts.passages}>
        {list.rows.map((chunk) => <PassageRow key={chunk.position} chunk={chunk} />)}
      </ol>
      {list.hasMore && (
        <div class="more">
          <Button busy={list.isLoadingMore} onClick={list.more}>{t().common.more}</Button>
        </div>
      )}
    </>
  );
}

function PassageRow({ chunk }: { chunk: Chunk }) {
  const place = placeOf(chunk);
  return (
    <li>
      <details class="fold">
        <summary dir="auto">
          <span class="soft figure">{formatNumber(chunk.position + 1)}</span>
          <span class="clip">{chunk.text.slice(0, 200)}</span>
        </summary>
        <div class="stack">
          {place && <p class="soft" dir="auto">{place}</p>}
          <LongText
            text={chunk.text}
            label={t().knowledge.passage(formatNumber(chunk.position + 1))}
          />
        </div>
      </details>
    </li>
  );
}
