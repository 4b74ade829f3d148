// The user's own rating of an answer.
import { MessageSquareText, ThumbsDown, ThumbsUp } from "lucide-preact";
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useChange } from "../../api/queries";
import { t } from "../../texts";
import { Button, IconButton } from "../../ui/button";
import { TextArea } from "../../ui/field";
import { Problem } from "../../ui/states";
import type { Message } from "./messages";

const PATH = "/api/v1/conversations/{conversation_id}/messages/{message_id}/feedback";
const MAX = 2000;

type Rating = "up" | "down";
interface RatingProps {
  conversationId: string;
  message: Message;
  onChange: (feedback: Message["feedback"]) => void;
}

export function useRating({ conversationId, message, onChange }: RatingProps) {
  const [isOpen, setOpen] = useState(false);
  const path = { conversation_id: conversationId, message_id: message.id };
  const rate = useChange((body: { rating: Rating | null; comment: string | null }) =>
    api.post(PATH, { path, body })
  );
  const send = (rating: Rating | null, comment: string | null, opens: boolean) =>
    rate.mutate({ rating, comment }, {
      onSuccess: ({ feedback }) => {
        setOpen(opens);
        onChange(feedback);
      },
    });
  const { rating: now = null, comment = null } = message.feedback ?? {};
  return {
    isOpen,
    setOpen,
    isBusy: rate.isPending,
    error: rate.error,
    now,
    comment,
    // The same thumb again withdraws the rating.
    press: (rating: Rating) =>
      now === rating ? send(null, null, false) : send(rating, comment, true),
    save: (text: string) => send(now, text.trim() || null, false),
  };
}

export type RatingState = ReturnType<typeof useRating>;

export function Thumbs({ rating }: { rating: RatingState }) {
  const texts = t().conversations;
  return (
    <>
      <IconButton
        icon={ThumbsUp}
        label={texts.ratings.up}
        aria-pressed={rating.now === "up"}
        onClick={() => rating.press("up")}
      />
      <IconButton
        icon={ThumbsDown}
        label={texts.ratings.down}
        aria-pressed={rating.now === "down"}
        onClick={() => rating.press("down")}
      />
      {rating.now && (
        <IconButton
          icon={MessageSquareText}
          label={texts.comment}
          aria-expanded={rating.isOpen}
          onClick={() => rating.setOpen(!rating.isOpen)}
        />
      )}
    </>
  );
}

export function Comment({ rating }: { rating: RatingState }) {
  if (rating.isOpen) return <CommentForm rating={rating} />;
  return (
    <>
      {rating.comment && <p class="comment soft" dir="auto">{rating.comment}</p>}
      <Problem error={rating.error} />
    </>
  );
}

function CommentForm({ rating }: { rating: RatingState }) {
  const [text, setText] = useState(rating.comment ?? "");
  const texts = t().conversations;
  return (
    <form
      class="stack comment-form"
      onSubmit={(event) => {
        event.preventDefault();
        rating.save(text);
      }}
      onKeyDown={(event) => event.key === "Escape" && rating.setOpen(false)}
    >
      <TextArea
        label={texts.comment}
        hint={texts.commentHint}
        isOptional
        rows={2}
        maxLength={MAX}
        value={text}
        onInput={setText}
        error={rating.error?.fields.comment}
      />
      {!rating.error?.fields.comment && <Problem error={rating.error} />}
      <div class="row">
        <Button type="submit" busy={rating.isBusy}>{texts.saveComment}</Button>
        <Button kind="plain" onClick={() => rating.setOpen(false)}>{t().common.cancel}</Button>
      </div>
    </form>
  );
}
