// A conversation with the agent as it is in the editor.
import { useEffect, useRef, useState } from "preact/hooks";

import { readEvents } from "../../../../../static/shared/event-stream.js";
import { send } from "../../../api/client";
import { toProblem } from "../../../api/problem";
import type { Fields } from "../state";
import { loadPast } from "./past";
import { type AnswerId, apply, type EventData, newTurn, type Turn } from "./turns";

export interface Chat {
  turns: Turn[];
  isBusy: boolean;
  ask: (question: Question) => Promise<void>;
  stop: () => void;
  reset: () => void;
}

export interface Question {
  // Empty for that of an answer: it is shown with the history before it.
  text: string;
  // The answer whose question is asked again, with the history before it.
  replayOf?: AnswerId;
  // The answer is of a conversation that the chat does not show.
  isFromElsewhere?: boolean;
}

let lastId = 0;

// `getDraft` returns what differs from the live agent.
export function useChat(agentId: string, getDraft: () => Fields): Chat {
  const [turns, setTurns] = useState<Turn[]>([]);
  const [conversationId, setConversationId] = useState<string | null>(null);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);

  const change = (id: number, next: (turn: Turn) => Partial<Turn>) =>
    setTurns((all) => all.map((turn) => (turn.id === id ? { ...turn, ...next(turn) } : turn)));

  const showPast = async (id: number, answer: AnswerId) => {
    const { past, question } = await loadPast(answer);
    setTurns((all) => [...past, ...all.filter((turn) => turn.id >= id)]);
    change(id, () => ({ question }));
  };

  const ask = async ({ text, replayOf, isFromElsewhere }: Question) => {
    const id = ++lastId;
    const started = performance.now();
    const controller = new AbortController();
    running.current = controller;
    const original = isFromElsewhere && replayOf ? replayOf : null;
    setTurns((all) => [...all, newTurn(id, { question: text, original })]);
    // Without it, the answer is still of use.
    if (!text && replayOf?.conversationId) void showPast(id, replayOf).catch(() => {});
    try {
      const body = {
        draft: getDraft(),
        ...(replayOf
          ? { replay_of: replayOf.messageId }
          : { message: text, ...(conversationId ? { conversation_id: conversationId } : {}) }),
      };
      const path = "/api/v1/agents/{agent_id}/preview";
      const parts = { path: { agent_id: agentId }, body };
      const response = await send("POST", path, parts, { signal: controller.signal });
      for await (const event of readEvents<EventData>(response)) {
        if (event.event === "message_start") {
          setConversationId(event.data.conversation_id ?? null);
        }
        change(id, (turn) => apply(turn, event));
      }
      change(id, ({ status, error, milliseconds }) => ({
        status: error ? "failed" : status === "running" ? "complete" : status,
        milliseconds: milliseconds ?? performance.now() - started,
      }));
    } catch (error) {
      const isStopped = controller.signal.aborted;
      change(
        id,
        () => isStopped ? { status: "stopped" } : { status: "failed", error: toProblem(error) },
      );
    } finally {
      if (running.current === controller) running.current = null;
    }
  };

  return {
    turns,
    isBusy: turns.some(({ status }) => status === "waiting" || status === "running"),
    ask,
    stop: () => running.current?.abort(),
    reset: () => {
      running.current?.abort();
      setTurns([]);
      setConversationId(null);
    },
  };
}
