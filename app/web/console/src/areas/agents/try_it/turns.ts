// A question, and what the events of a stream make of its answer.
import { type Problem, Problem as ProblemClass } from "../../../api/problem";
import type { Schemas } from "../../../api/types";
import type { ToolCall } from "../../../ui/turn_parts";

export interface Turn {
  id: number;
  question: string;
  answer: string;
  calls: ToolCall[];
  sources: Schemas["SourceView"][];
  // "past": of the conversation that is asked again.
  status: "past" | "waiting" | "running" | "complete" | "stopped" | "failed";
  // The place in the queue of the local model, or how long it has worked.
  wait: { position?: number; seconds?: number };
  error: Problem | null;
  conversationId: string | null;
  messageId: string | null;
  usage: Schemas["TokenUsage"] | null;
  milliseconds: number | null;
  // null for callers who may not see costs.
  cost: number | null;
  // The answer of another conversation whose question this is.
  original: AnswerId | null;
}

export interface AnswerId {
  conversationId: string;
  messageId: string;
}

// null until the answer is stored.
export function answerOf({ conversationId, messageId }: Turn): AnswerId | null {
  return conversationId && messageId ? { conversationId, messageId } : null;
}

export function newTurn(id: number, fields: Partial<Turn>): Turn {
  return {
    id,
    question: "",
    answer: "",
    calls: [],
    sources: [],
    status: "waiting",
    wait: {},
    error: null,
    conversationId: null,
    messageId: null,
    usage: null,
    milliseconds: null,
    cost: null,
    original: null,
    ...fields,
  };
}

// Every field that one of the events has.
export interface EventData {
  conversation_id?: string;
  delta?: string;
  position?: number;
  seconds?: number;
  id?: string;
  tool?: string;
  message_id?: string;
  usage?: Schemas["TokenUsage"];
  response_time_ms?: number;
  cost_usd?: number | null;
  sources?: Schemas["SourceView"][];
  code?: string;
  message?: string;
}

export function apply(turn: Turn, { event, data }: ServerEvent<EventData>): Partial<Turn> {
  switch (event) {
    case "message_start":
      return { conversationId: data.conversation_id ?? null };
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
        milliseconds: data.response_time_ms || null,
        cost: data.cost_usd ?? null,
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
