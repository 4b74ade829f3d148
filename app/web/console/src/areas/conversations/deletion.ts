// Deleting a conversation, which can be undone for a few seconds.
import { signal } from "@preact/signals";

import { api } from "../../api/client";
import { type Problem, toProblem } from "../../api/problem";
import { t } from "../../texts";
import { doLater } from "../../ui/toast";

// Conversations that lists do not show any more.
export const leaving = signal<ReadonlySet<string>>(new Set());
// Why a conversation is still there.
export const failure = signal<Problem | null>(null);

function show(id: string): void {
  leaving.value = new Set([...leaving.value].filter((other) => other !== id));
}

export function deleteConversation(id: string): void {
  failure.value = null;
  doLater(t().conversations.deleted, {
    apply: () => (leaving.value = new Set([...leaving.value, id])),
    revert: () => show(id),
    commit: async () => {
      try {
        await api.delete("/api/v1/conversations/{conversation_id}", {
          path: { conversation_id: id },
        });
      } catch (error) {
        failure.value = toProblem(error);
        show(id);
      }
    },
  });
}
