// Deleting a tool, which can be undone for a few seconds.
import { signal } from "@preact/signals";

import { api } from "../../api/client";
import { type Problem, toProblem } from "../../api/problem";
import { queries, refresh } from "../../api/queries";
import { t } from "../../texts";
import { doLater } from "../../ui/toast";

// Tools that lists do not show any more.
export const leaving = signal<ReadonlySet<string>>(new Set());
// Why a tool is still there.
export const failure = signal<Problem | null>(null);

function show(id: string): void {
  leaving.value = new Set([...leaving.value].filter((other) => other !== id));
}

export function deleteTool(id: string, name: string): void {
  failure.value = null;
  doLater(t().tools.deleted(name), {
    apply: () => (leaving.value = new Set([...leaving.value, id])),
    revert: () => show(id),
    commit: async () => {
      try {
        await api.delete("/v1/tools/{tool_id}", { path: { tool_id: id } });
        await refresh(queries, ["/v1/tools"]);
      } catch (error) {
        failure.value = toProblem(error);
      }
      show(id);
    },
  });
}
