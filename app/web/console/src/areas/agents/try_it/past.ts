// The questions and answers before an answer.
import { api } from "../../../api/client";
import { type AnswerId, newTurn, type Turn } from "./turns";

const MESSAGES = "/api/v1/conversations/{conversation_id}/messages";
const LIMIT = 50;

// The last question is the one that the answer is for.
export async function loadPast(
  { conversationId, messageId }: AnswerId,
): Promise<{ past: Turn[]; question: string }> {
  const path = { conversation_id: conversationId };
  const { data } = await api.get(MESSAGES, { path, query: { before: messageId, limit: LIMIT } });
  const last = data.findLastIndex(({ role }) => role === "user");
  const past: Turn[] = [];
  for (const [index, message] of data.slice(0, Math.max(0, last)).entries()) {
    const before = past.at(-1);
    if (message.role === "user") {
      past.push(newTurn(-index - 1, { status: "past", question: message.content }));
    } else if (before && !before.answer) {
      before.answer = message.content;
      before.calls = message.tool_calls;
      before.sources = message.sources;
    }
  }
  return { past, question: data[last]?.content ?? "" };
}
