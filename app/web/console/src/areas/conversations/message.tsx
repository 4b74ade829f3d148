// A message as the visitor saw it, with what an answer has done below it.
import { Paperclip, PencilRuler, ScanEye } from "lucide-preact";

import { api } from "../../api/client";
import { may } from "../../api/session";
import { href } from "../../base";
import { t } from "../../texts";
import { IconButton } from "../../ui/button";
import { Markdown } from "../../ui/content";
import { formatSize } from "../../ui/format";
import { Ago, Badge } from "../../ui/small";
import { CutText, Sources, ToolCalls } from "../../ui/turn_parts";
import type { Message } from "./messages";
import { Comment, Thumbs, useRating } from "./rating";

const TEXT = "/api/v1/conversations/{conversation_id}/messages/{message_id}/text";

interface MessageProps {
  conversationId: string;
  agentId: string;
  message: Message;
  // Answers of previews have no ratings.
  canRate: boolean;
  onChange: (changes: Partial<Message>) => void;
  onInspect: () => void;
}

export function MessageView(props: MessageProps) {
  return props.message.role === "user" ? <Question {...props} /> : <Answer {...props} />;
}

function Question({ conversationId, message }: MessageProps) {
  const { content, content_chars: total } = message;
  const texts = t().conversations;
  return (
    <div class="turn">
      <div class="question">
        <span class="hidden">{texts.question}</span>
        {total
          ? (
            <CutText
              text={content}
              total={total}
              label={texts.question}
              load={(offset) => loadText(conversationId, message.id, { offset })}
            />
          )
          : <p dir="auto">{content}</p>}
        <Attachments message={message} />
      </div>
      <p class="turn-time soft">
        <Ago at={message.created_at} />
      </p>
    </div>
  );
}

function Answer({ conversationId, agentId, message, canRate, onChange, onInspect }: MessageProps) {
  const { id, content, content_chars: total, status, error } = message;
  const texts = t().conversations;
  const rating = useRating({
    conversationId,
    message,
    onChange: (feedback) => onChange({ feedback }),
  });
  return (
    <div class="answer">
      <span class="hidden">{texts.answer}</span>
      <ToolCalls
        calls={message.tool_calls}
        load={(call_id, part, offset) => loadText(conversationId, id, { call_id, part, offset })}
      />
      {total
        ? (
          <CutText
            text={content}
            total={total}
            label={texts.answer}
            load={(offset) => loadText(conversationId, id, { offset })}
          />
        )
        : content && <Markdown text={content} />}
      <Attachments message={message} />
      {status === "interrupted" && <Badge tone="warn">{texts.interrupted}</Badge>}
      {status === "failed" && (
        <div class="note bad">
          <span dir="auto">{error?.message || texts.failedAnswer}</span>
          {error && <code dir="auto">{error.code}</code>}
        </div>
      )}
      <Sources sources={message.sources} />
      <div class="turn-foot">
        <span class="soft">
          <Ago at={message.created_at} />
        </span>
        {canRate && <Thumbs rating={rating} />}
        {may("agents:write") && (
          <a
            class="icon-button"
            href={href(`/agents/${agentId}`, { replay: id, of: conversationId })}
            aria-label={texts.openInDraft}
            title={texts.openInDraft}
          >
            <PencilRuler aria-hidden="true" />
          </a>
        )}
        <IconButton icon={ScanEye} label={t().turns.title} onClick={onInspect} />
      </div>
      <Comment rating={rating} />
    </div>
  );
}

function Attachments({ message: { attachments } }: { message: Message }) {
  if (!attachments.length) return null;
  return (
    <ul class="row">
      {attachments.map(({ id, name, size_bytes }) => (
        <li key={id} class="attachment soft">
          <Paperclip aria-hidden="true" />
          <span class="clip" dir="auto">{name}</span>
          <span>{formatSize(size_bytes)}</span>
        </li>
      ))}
    </ul>
  );
}

function loadText(
  conversationId: string,
  messageId: string,
  query: { part?: "input" | "output"; call_id?: string; offset: number },
) {
  return api.get(TEXT, {
    path: { conversation_id: conversationId, message_id: messageId },
    query,
  });
}
