// A conversation with the agent as it is in the editor.
import { useEffect, useRef, useState } from "preact/hooks";

import { readEvents } from "../../../../../static/shared/event-stream.js";
import { send } from "../../../api/client";
import { type Problem, Problem as ProblemClass, toProblem } from "../../../api/problem";
import type { Schemas } from "../../../api/types";
import type { ToolCall } from "../../../ui/turn_parts";
import type { Fields } from "../state";

export interface Turn {
  id: number;
  question: string;
  answer: string;
  calls: ToolCall[];
  sources: Schemas["SourceView"][];
  status: "waiting" | "running" | "complete" | "stopped" | "failed";
  // The place in the queue of the local model, or how long it has worked.
  wait: { position?: number; seconds?: number };
  error: Problem | null;
  messageId: string | null;
  usage: Schemas["TokenUsage"] | null;
  milliseconds: number | null;
  model: string;
}

export interface Chat {
  turns: Turn[];
  conversationId: string | null;
  isBusy: boolean;
  ask: (question: Question) => Promise<void>;
  stop: () => void;
  reset: () => void;
}

export interface Question {
  text: string;
  // The answer whose question is asked again, with the history before it.
  replayOf?: string;
}

let lastId = 0;

export function useChat(agentId: string, getDraft: () => Fields, model: string): Chat {
  const [turns, setTurns] = useState<Turn[]>([]);
  const [conversationId, setConversationId] = useState<string | null>(null);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);

  const change = (id: number, next: (turn: Turn) => Partial<Turn>) =>
    setTurns((all) => all.map((turn) => (turn.id === id ? { ...turn, ...next(turn) } : turn)));

  const ask = async ({ text, replayOf }: Question) => {
    const id = ++lastId;
    const started = performance.now();
    const controller = new AbortController();
    running.current = controller;
    setTurns((all) => [...all, newTurn(id, text, model)]);
    try {
      const body = {
        draft: getDraft(),
        ...(text ? { message: text } : {}),
        ...(replayOf
          ? { replay_of: replayOf }
          : conversationId
          ? { conversation_id: conversationId }
          : {}),
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
      change(id, ({ status, error }) => ({
        status: error ? "failed" : status === "running" ? "complete" : status,
        milliseconds: performance.now() - started,
      }));
    } catch (error) {
      const isStopped = controller.signal.aborted;
      change(
        id,
        () => isStopped ? { status: "stopped" } : { status: "failed", error: toProblem(error) },
      );
    } finally {
      running.current = null;
    }
  };

  return {
    turns,
    conversationId,
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

function newTurn(id: number, question: string, model: string): Turn {
  return {
    id,
    question,
    answer: "",
    calls: [],
    sources: [],
    status: "waiting",
    wait: {},
    error: null,
    messageId: null,
    usage: null,
    milliseconds: null,
    model,
  };
}

// Every field that one of the events has.
interface EventData {
  conversation_id?: string;
  delta?: string;
  position?: number;
  seconds?: number;
  id?: string;
  tool?: string;
  message_id?: string;
  usage?: Schemas["TokenUsage"];
  sources?: Schemas["SourceView"][];
  code?: string;
  message?: string;
}

function apply(turn: Turn, { event, data }: ServerEvent<EventData>): Partial<Turn> {
  switch (event) {
    case "queue":
    case "progress":
      return { wait: data };
    case "content_delta":
      return { status: "running", answer: turn.answer + (data.delta ?? "") };
    case "tool_use":
      return { status: "running", calls: [...turn.calls, data as ToolCall] };
    case "tool_result":
      return {
        calls: turn.calls.map((call) => (call.id === data.id ? { ...call, ...data } : call)),
      };
    case "message_stop":
      return {
        messageId: data.message_id ?? null,
        usage: data.usage ?? null,
        sources: data.sources ?? [],
        status: "complete",
      };
    case "error":
      return {
        status: "failed",
        error: new ProblemClass(200, data.code ?? "error", data.message ?? "", {}, null),
      };
    default:
      return {};
  }
}
