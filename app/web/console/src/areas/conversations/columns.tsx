import { CircleAlert, type LucideIcon, ThumbsDown, ThumbsUp } from "lucide-preact";

import { t } from "../../texts";
import { formatNumber } from "../../ui/format";
import { Ago } from "../../ui/small";
import type { Column } from "../../ui/table";
import type { Conversation } from "./filters";

// `hasAgent` leaves out the agent, which is the same in all rows.
export function columns(hasAgent: boolean): Column<Conversation>[] {
  const texts = t().conversations;
  const agent: Column<Conversation> = {
    key: "agent",
    label: texts.agent,
    width: "18%",
    isSecondary: true,
    cell: ({ agent_name }) => agent_name,
  };
  return [
    { key: "title", label: texts.conversation, cell: (row) => <Title row={row} /> },
    {
      key: "person",
      label: texts.person,
      width: "20%",
      isSecondary: true,
      cell: (row) => (
        <>
          <span dir="auto">{personOf(row)}</span>
          <span class="preview soft">{texts.sources[row.source]}</span>
        </>
      ),
    },
    ...(hasAgent ? [] : [agent]),
    {
      key: "signs",
      label: texts.signs,
      width: "96px",
      cell: (row) => <Signs row={row} />,
    },
    {
      key: "last",
      label: texts.last,
      width: "152px",
      isSecondary: true,
      cell: ({ last_message_at }) => <Ago at={last_message_at} />,
    },
  ];
}

function personOf(
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
      <Sign icon={CircleAlert} tone="bad" label={texts.failures.true} value={row.failed_answers} />
      <Sign icon={ThumbsUp} tone="good" label={texts.ratings.up} value={row.ratings_up} />
      <Sign icon={ThumbsDown} tone="bad" label={texts.ratings.down} value={row.ratings_down} />
    </span>
  );
}

function Sign(
  { icon: Icon, tone, label, value }: {
    icon: LucideIcon;
    tone: "good" | "bad";
    label: string;
    value: number;
  },
) {
  if (!value) return null;
  return (
    <span class={`sign ${tone}`} title={label}>
      <Icon aria-hidden="true" />
      <span class="hidden">{`${label}: `}</span>
      {formatNumber(value)}
    </span>
  );
}
