// The agent beside its editor: one conversation, or two with the same questions to compare.
import { ArrowUp, Columns2, Plus, Square } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { t } from "../../../texts";
import { Button, IconButton } from "../../../ui/button";
import { TurnContext } from "../../../ui/turn_context";
import type { Fields } from "../state";
import { type Chat, type Question, useChat } from "./chat";
import { OtherSidePicker, useFirstChoice, useOtherSide } from "./other_side";
import { describeSpending, isAnswered, sumSpending, TurnView } from "./turn";
import { type AnswerId, answerOf, type Turn } from "./turns";

interface TryItProps {
  agentId: string;
  // What differs in the editor from the live agent.
  draft: Fields;
  model: string;
  // An answer of another conversation whose question is asked again at once.
  replay?: AnswerId | undefined;
  onReplayed: () => void;
}

export function TryIt({ agentId, draft, model, replay, onReplayed }: TryItProps) {
  const [choice, setChoice] = useState<string>();
  const [inspected, setInspected] = useState<AnswerId | null>(null);
  const texts = t().agents.tryIt;
  const other = useOtherSide(agentId, choice, draft);
  const firstChoice = useFirstChoice(draft);
  const first = useChat(agentId, () => draft);
  const second = useChat(agentId, () => other?.fields ?? {});
  const chats = other ? [first, second] : [first];
  const isBusy = chats.some((chat) => chat.isBusy);
  const ask = (question: Question) => chats.forEach((chat) => void chat.ask(question));
  useEffect(() => {
    if (!replay) return;
    ask({ text: "", replayOf: replay, isFromElsewhere: true });
    onReplayed();
  }, [replay?.messageId]);
  // The other side answers the last question, too, with the history that it had.
  useEffect(() => {
    const last = first.turns.at(-1);
    second.reset();
    const answer = last && answerOf(last);
    if (choice && answer) void second.ask({ text: "", replayOf: answer });
  }, [choice]);
  const isEven = first.turns.filter(isAnswered).length === second.turns.filter(isAnswered).length;
  return (
    <section class="try-it" aria-label={texts.title}>
      <div class="section-head">
        <h2>{texts.title}</h2>
        <div class="actions">
          <IconButton
            icon={Columns2}
            label={texts.compare}
            aria-pressed={other !== null}
            onClick={() => setChoice(other ? undefined : firstChoice)}
          />
          <IconButton
            icon={Plus}
            label={texts.restart}
            onClick={() => chats.forEach((chat) => chat.reset())}
          />
        </div>
      </div>
      <div class="chats">
        {chats.map((chat, index) => (
          <div
            key={index}
            class="chat"
            role="group"
            aria-label={index ? texts.other : texts.inEditor}
          >
            {other && (
              <Side turns={isEven ? chat.turns : []}>
                {index === 0
                  ? (
                    <p class="chat-side clip">
                      {texts.inEditor} <span class="soft">{model}</span>
                    </p>
                  )
                  : (
                    <OtherSidePicker
                      side={other}
                      onChange={setChoice}
                    />
                  )}
              </Side>
            )}
            <Log
              chat={chat}
              onAgain={(turn) => {
                const answer = answerOf(turn);
                if (answer) ask({ text: turn.question, replayOf: answer });
              }}
              onInspect={setInspected}
            />
          </div>
        ))}
      </div>
      <Composer
        isBusy={isBusy}
        onSend={(text) => ask({ text })}
        onStop={() => chats.forEach((chat) => chat.stop())}
      />
      {inspected && <TurnContext {...inspected} onClose={() => setInspected(null)} />}
    </section>
  );
}

// One of two that are compared: which it is, and what all its answers have taken.
function Side({ turns, children }: { turns: Turn[]; children: ComponentChildren }) {
  return (
    <div class="chat-head">
      {children}
      <p class="hint">
        {turns.some(isAnswered)
          ? t().agents.tryIt.allAnswers(describeSpending(sumSpending(turns)))
          : t().agents.tryIt.noAnswers}
      </p>
    </div>
  );
}

function Log(
  { chat, onAgain, onInspect }: {
    chat: Chat;
    onAgain: (turn: Turn) => void;
    onInspect: (answer: AnswerId) => void;
  },
) {
  const list = useRef<HTMLDivElement>(null);
  const last = chat.turns.at(-1);
  useEffect(() => {
    const element = list.current;
    if (element) element.scrollTop = element.scrollHeight;
  }, [last?.answer, chat.turns.length]);
  if (!chat.turns.length) return <p class="chat-empty soft">{t().agents.tryIt.empty}</p>;
  return (
    <div class="turns" ref={list} role="log" aria-label={t().agents.tryIt.title} tabIndex={0}>
      <ol>
        {chat.turns.map((turn) => (
          <TurnView
            key={turn.id}
            turn={turn}
            onAgain={chat.isBusy ? undefined : onAgain}
            onInspect={onInspect}
          />
        ))}
      </ol>
    </div>
  );
}

function Composer(
  { isBusy, onSend, onStop }: {
    isBusy: boolean;
    onSend: (text: string) => void;
    onStop: () => void;
  },
) {
  const [text, setText] = useState("");
  const texts = t().agents.tryIt;
  const submit = (event: Event) => {
    event.preventDefault();
    if (isBusy || !text.trim()) return;
    onSend(text);
    setText("");
  };
  return (
    <form class="composer" onSubmit={submit}>
      <textarea
        rows={1}
        dir="auto"
        aria-label={texts.message}
        placeholder={texts.message}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
        }}
      />
      {isBusy
        ? <Button icon={Square} onClick={onStop}>{texts.stop}</Button>
        : <Button kind="primary" icon={ArrowUp} type="submit">{texts.send}</Button>}
    </form>
  );
}
