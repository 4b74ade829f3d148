// The agent beside its editor: one conversation, or two with the same questions to compare.
import { ArrowUp, Columns2, Plus, Square } from "lucide-preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { t } from "../../../texts";
import { Button, IconButton } from "../../../ui/button";
import { useModels } from "../model_field";
import type { Fields } from "../state";
import { type Chat, type Turn, useChat } from "./chat";
import { Inspect } from "./inspect";
import { TurnView } from "./turn";

interface TryItProps {
  agentId: string;
  // What differs in the editor from the live agent.
  draft: Fields;
  model: string;
  // An answer of another conversation whose question is asked again at once.
  replay?: string | undefined;
  onReplayed: () => void;
}

export function TryIt({ agentId, draft, model, replay, onReplayed }: TryItProps) {
  const [other, setOther] = useState<string | null>(null);
  const [inspected, setInspected] = useState<[Chat, Turn] | null>(null);
  const texts = t().agents.tryIt;
  const models = useModels();
  const first = useChat(agentId, () => draft, model);
  const second = useChat(
    agentId,
    () => ({ ...draft, primary_model: other ?? model }),
    other ?? model,
  );
  const chats = other === null ? [first] : [first, second];
  const isBusy = chats.some((chat) => chat.isBusy);
  const ask = (text: string, replayOf?: string) => {
    for (const chat of chats) void chat.ask({ text, ...(replayOf ? { replayOf } : {}) });
  };
  const reset = () => chats.forEach((chat) => chat.reset());
  useEffect(() => {
    if (!replay) return;
    ask("", replay);
    onReplayed();
  }, [replay]);
  return (
    <section class="try-it" aria-label={texts.title}>
      <div class="section-head">
        <h2>{texts.title}</h2>
        <div class="actions">
          <IconButton
            icon={Columns2}
            label={texts.compare}
            aria-pressed={other !== null}
            onClick={() => setOther(other === null ? models.at(-1)?.id ?? model : null)}
          />
          <IconButton icon={Plus} label={texts.restart} onClick={reset} />
        </div>
      </div>
      <div class="chats">
        {chats.map((chat, index) => (
          <div key={index} class="chat">
            {other !== null && (
              index === 0 ? <p class="chat-model soft clip">{model}</p> : (
                <select
                  class="chat-model"
                  aria-label={texts.compareWith}
                  value={other}
                  onChange={(event) => setOther(event.currentTarget.value)}
                >
                  {models.map(({ id }) => (
                    <option key={id} value={id} selected={id === other}>{id}</option>
                  ))}
                </select>
              )
            )}
            <Log
              chat={chat}
              onAgain={(turn) => chat.ask({ text: turn.question, replayOf: turn.messageId ?? "" })}
              onInspect={(turn) => setInspected([chat, turn])}
            />
          </div>
        ))}
      </div>
      <Composer isBusy={isBusy} onSend={ask} onStop={() => chats.forEach((chat) => chat.stop())} />
      {inspected && (
        <Inspect
          conversationId={inspected[0].conversationId ?? ""}
          messageId={inspected[1].messageId ?? ""}
          onClose={() => setInspected(null)}
        />
      )}
    </section>
  );
}

function Log(
  { chat, onAgain, onInspect }: {
    chat: Chat;
    onAgain: (turn: Turn) => void;
    onInspect: (turn: Turn) => void;
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
