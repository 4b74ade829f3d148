// Deleting documents and sources, which can be undone for a few seconds.
import { signal } from "@preact/signals";

import { type Problem, toProblem } from "../../api/problem";
import { t } from "../../texts";
import { doLater } from "../../ui/toast";

// What lists do not show any more.
export const leaving = signal<ReadonlySet<string>>(new Set());
// Why a record is still there.
export const failure = signal<Problem | null>(null);

export function deleteLater(id: string, name: string, remove: () => Promise<unknown>): void {
  const show = () => {
    leaving.value = new Set([...leaving.value].filter((other) => other !== id));
  };
  failure.value = null;
  doLater(t().knowledge.deleted(name), {
    apply: () => (leaving.value = new Set([...leaving.value, id])),
    revert: show,
    commit: async () => {
      try {
        await remove();
      } catch (error) {
        failure.value = toProblem(error);
      }
      show();
    },
  });
}
