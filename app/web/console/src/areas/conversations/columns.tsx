import { ThumbsDown, ThumbsUp } from "lucide-preact";

import { t } from "../../texts";
import { formatNumber } from "../../ui/format";
import { Ago, Badge } from "../../ui/small";
import type { Column } from "../../ui/table";
import type { Conversation } from "./filters";

export function columns(): Column<Conversation>[] {
  const texts = t().conversations;
  return [
    { key: "title", label: texts.conversation, cell: (row) => <Title row={row} /> },
    {
      key: "person",
      label: texts.person,
      width: "168px",
      isSecondary: true,
      cell: (row) => personOf(row),
    },
    {
      key: "agent",
      label: texts.agent,
      width: "168px",
      isSecondary: true,
      cell: ({ agent_name }) => agent_name,
    },
    {
      key: "source",
      label: texts.filters.source,
      width: "128px",
      isSecondary: true,
      cell: ({ source }) => texts.sources[source],
    },
    { key: "signs", label: texts.signs, width: "136px", cell: (row) => <Signs row={row} /> },
    {
      key: "messages",
      label: texts.messages,
      width: "104px",
      isNumber: true,
      isSecondary: true,
      cell: ({ message_count }) => formatNumber(message_count),
    },
    {
      key: "last",
      label: texts.last,
      width: "136px",
      isSecondary: true,
      cell: ({ last_message_at }) => <Ago at={last_message_at} />,
    },
  ];
}

export function personOf(
  { user_name, visitor }: Pick<Conversation, "user_name" | "visitor">,
): string {
  return user_name || visitor?.name || visitor?.email || visitor?.id || t().conversations.visitor;
}

function Title({ row: { title, unread, last_message: last } }: { row: Conversation }) {
  const texts = t().conversations;
  return (
    <>
      {unread && <span class="hidden">{`${texts.reads.true}: `}</span>}
      <span dir="auto">{title || texts.untitled}</span>
      {last && last.text !== title && <span class="preview soft" dir="auto">{last.text}</span>}
    </>
  );
}

function Signs({ row }: { row: Conversation }) {
  const texts = t().conversations;
  return (
    <span class="signs">
      {row.failed_answers > 0 && <Badge tone="bad">{texts.failedAnswer}</Badge>}
      {row.ratings_up > 0 && (
        <span class="sign good" title={texts.ratings.up}>
          <ThumbsUp aria-hidden="true" />
          <span class="hidden">{texts.ratings.up}</span>
          {formatNumber(row.ratings_up)}
        </span>
      )}
      {row.ratings_down > 0 && (
        <span class="sign bad" title={texts.ratings.down}>
          <ThumbsDown aria-hidden="true" />
          <span class="hidden">{texts.ratings.down}</span>
          {formatNumber(row.ratings_down)}
        </span>
      )}
    </span>
  );
}
