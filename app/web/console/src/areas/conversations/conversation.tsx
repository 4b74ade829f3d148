// A conversation: its messages, and what is known about it.
import { Ellipsis, Mail } from "lucide-preact";
import { useLocation } from "preact-iso";
import { useEffect, useState } from "preact/hooks";

import { api, toCurl } from "../../api/client";
import { useChange, useRead } from "../../api/queries";
import { may, session } from "../../api/session";
import { href } from "../../base";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { copy } from "../../ui/copy";
import { Menu, type MenuItem } from "../../ui/menu";
import { Page } from "../../ui/page";
import { Badge } from "../../ui/small";
import { whileHere } from "../../ui/state";
import { Empty, Failure, Problem, Skeleton } from "../../ui/states";
import { TurnContext } from "../../ui/turn_context";
import { deleteConversation } from "./deletion";
import { type Conversation, Details } from "./details";
import { Log } from "./log";
import { MessageView } from "./message";
import { type Messages, useMessages } from "./messages";
import { markAsRead, markAsUnread } from "./reads";

const ONE = "/api/v1/conversations/{conversation_id}";
const MESSAGES = "/api/v1/conversations/{conversation_id}/messages";
const POLL_MS = 15_000;

export function ConversationScreen({ id }: { id: string }) {
  const query = useRead(ONE, { path: { conversation_id: id } }, { refetchInterval: POLL_MS });
  const messages = useMessages(id, () => void markAsRead(id).catch(() => undefined));
  const texts = t().conversations;
  const conversation = query.data;
  useEffect(() => {
    // Nobody waits for it; a failure leaves the conversation unread.
    if (conversation) void markAsRead(id).catch(() => undefined);
  }, [Boolean(conversation)]);
  const error = conversation ? null : query.error;
  return (
    <Page
      title={conversation ? conversation.title || texts.untitled : texts.conversation}
      parents={[{ label: t().rail.conversations, to: "/conversations" }]}
      beside={conversation?.status === "ended" && <Badge>{texts.statuses.ended}</Badge>}
      actions={conversation && <Actions conversation={conversation} onEnded={query.refetch} />}
      isWide
    >
      {error
        ? <Failure error={error} onRetry={() => query.refetch()} />
        : (
          <div class="conversation">
            {conversation ? <Body conversation={conversation} messages={messages} /> : <Skeleton />}
            {conversation && <Details conversation={conversation} />}
          </div>
        )}
    </Page>
  );
}

function Body(
  { conversation, messages: { messages, hasOlder, error, ...actions } }: {
    conversation: Conversation;
    messages: Messages;
  },
) {
  const [seen, setSeen] = useState<string | null>(null);
  const texts = t().conversations;
  if (!messages) {
    return error ? <Failure error={error} onRetry={actions.retry} /> : <Skeleton />;
  }
  if (!messages.length) return <Empty title={texts.noMessages}>{texts.noMessagesAbout}</Empty>;
  return (
    <div class="log-frame">
      {error && (
        <div class="note bad">
          <Problem error={error} />
          <Button onClick={actions.retry}>{t().common.retry}</Button>
        </div>
      )}
      {hasOlder && <span class="hidden">{texts.older}</span>}
      <Log
        label={texts.messages}
        keys={messages.map(({ id }) => id)}
        onStart={actions.loadOlder}
        entry={(index) => {
          const message = messages[index];
          return message && (
            <MessageView
              conversationId={conversation.id}
              agentId={conversation.agent_id}
              message={message}
              canRate={conversation.source !== "preview"}
              onChange={(changes) => actions.update(message.id, changes)}
              onInspect={() => setSeen(message.id)}
            />
          );
        }}
      />
      {seen && (
        <TurnContext
          conversationId={conversation.id}
          messageId={seen}
          onClose={() => setSeen(null)}
        />
      )}
    </div>
  );
}

function Actions(
  { conversation, onEnded }: { conversation: Conversation; onEnded: () => unknown },
) {
  const { id, status, user_id } = conversation;
  const texts = t().conversations;
  const { route } = useLocation();
  const path = { conversation_id: id };
  const unread = useChange(() => markAsUnread(id));
  const end = useChange(() => api.post(`${ONE}/end`, { path }));
  const canChange = may("conversations:write") || user_id === session.value?.user.id;
  const items: (MenuItem | false)[] = [
    {
      label: t().common.copyCurl,
      onSelect: () => void copy(toCurl("GET", MESSAGES, { path })),
    },
    canChange && status === "active" && {
      label: texts.end,
      onSelect: () => end.mutate(undefined, { onSuccess: () => void onEnded() }),
    },
    canChange && {
      label: texts.delete,
      isDanger: true,
      onSelect: () => {
        deleteConversation(id);
        route(href("/conversations"), true);
      },
    },
  ];
  return (
    <>
      <Problem error={end.error ?? unread.error} />
      <Button
        icon={Mail}
        busy={unread.isPending}
        onClick={() =>
          unread.mutate(undefined, {
            onSuccess: whileHere(() => route(href("/conversations"))),
          })}
      >
        {texts.markUnread}
      </Button>
      <Menu
        label={t().common.actions}
        icon={Ellipsis}
        items={items.filter((item): item is MenuItem => Boolean(item))}
      />
    </>
  );
}
