// Who spoke with which agent, where and when.
import { useRead } from "../../api/queries";
import { may } from "../../api/session";
import type { Schemas } from "../../api/types";
import { href } from "../../base";
import { t } from "../../texts";
import { CopyText } from "../../ui/copy";
import { formatNumber, formatTime } from "../../ui/format";
import { Facts } from "../../ui/page";
import { Ago } from "../../ui/small";

export type Conversation = Schemas["ConversationView"];

export function Details({ conversation }: { conversation: Conversation }) {
  const texts = t().conversations;
  const { source, status, message_count, created_at, last_message_at, ended_at } = conversation;
  return (
    <aside class="card" aria-label={texts.details}>
      <Facts
        rows={[
          [texts.agent, <AgentLink key="agent" id={conversation.agent_id} />],
          [texts.person, <Person key="person" conversation={conversation} />],
          [texts.filters.source, texts.sources[source]],
          [t().common.status, texts.statuses[status]],
          [texts.messages, formatNumber(message_count)],
          [texts.started, formatTime(created_at)],
          [texts.last, <Ago key="last" at={last_message_at} />],
          ...(ended_at ? [[texts.ended, formatTime(ended_at)] as [string, string]] : []),
          ["ID", <CopyText key="id" text={conversation.id} />],
        ]}
      />
    </aside>
  );
}

function AgentLink({ id }: { id: string }) {
  const agent = useRead("/api/v1/agents/{agent_id}", { path: { agent_id: id } }, {
    enabled: may("agents:read"),
  });
  const name = agent.data?.name ?? id;
  return (
    <>
      {may("agents:read")
        ? <a href={href(`/agents/${id}`)} dir="auto">{name}</a>
        : <span dir="auto">{name}</span>}
      <a class="more-of" href={href("/conversations", { agent_id: id })}>
        {t().conversations.allOf}
      </a>
    </>
  );
}

function Person({ conversation: { user_id, visitor } }: { conversation: Conversation }) {
  const texts = t().conversations;
  const user = useRead("/users/{user_id}", { path: { user_id: user_id ?? "" } }, {
    enabled: Boolean(user_id?.startsWith("usr_")) && may("admin:users"),
  });
  const { first_name = "", last_name = "", email } = user.data ?? {};
  const filter = visitor ? { visitor: visitor.id } : user_id ? { user_id } : null;
  const lines = visitor
    ? [visitor.name, visitor.email, visitor.id]
    : user_id
    ? [`${first_name} ${last_name}`.trim(), email, user.data ? null : user_id]
    : [texts.visitor];
  return (
    <>
      {lines.map((line) => line && <span key={line} class="line" dir="auto">{line}</span>)}
      {filter && <a class="more-of" href={href("/conversations", filter)}>{texts.allOf}</a>}
    </>
  );
}
