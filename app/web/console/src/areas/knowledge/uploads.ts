// Files that are on their way to the server. They go on while somebody looks at another screen.
import { signal } from "@preact/signals";

import { type Problem, toProblem } from "../../api/problem";
import { upload } from "../../api/upload";
import type { Schemas } from "../../api/types";
import { refreshDocuments } from "./types";

export interface Upload {
  id: number;
  agentId: string;
  file: File;
  isInternal: boolean;
  state: "waiting" | "sending" | "failed";
  share: number;
  error: Problem | null;
}

const AT_ONCE = 2;
// Agents read these formats.
export const ENDINGS = ".pdf,.docx,.xlsx,.pptx,.epub,.html,.htm,.md,.txt,.csv,.json,.jsonl";

export const uploads = signal<Upload[]>([]);
let last = 0;

export function addFiles(agentId: string, files: Iterable<File>, isInternal: boolean): void {
  const added = [...files].map((file): Upload => ({
    id: ++last,
    agentId,
    file,
    isInternal,
    state: "waiting",
    share: 0,
    error: null,
  }));
  uploads.value = [...uploads.value, ...added];
  startNext();
}

export function dismiss(id: number): void {
  uploads.value = uploads.value.filter((entry) => entry.id !== id);
}

export function retry(id: number): void {
  change(id, { state: "waiting", share: 0, error: null });
  startNext();
}

function change(id: number, changes: Partial<Upload>): void {
  uploads.value = uploads.value.map((
    entry,
  ) => (entry.id === id ? { ...entry, ...changes } : entry));
}

function startNext(): void {
  const sending = uploads.value.filter(({ state }) => state === "sending");
  const waiting = uploads.value.filter(({ state }) => state === "waiting");
  for (const entry of waiting.slice(0, AT_ONCE - sending.length)) void send(entry);
  const isBusy = uploads.value.some(({ state }) => state !== "failed");
  if (isBusy) addEventListener("beforeunload", askFirst);
  else removeEventListener("beforeunload", askFirst);
}

// The browser asks before it leaves a page whose files are not sent yet.
function askFirst(event: Event): void {
  event.preventDefault();
}

async function send({ id, agentId, file, isInternal }: Upload): Promise<void> {
  change(id, { state: "sending" });
  const form = new FormData();
  form.append("files", file, file.name);
  if (isInternal) form.append("visibility", "internal");
  try {
    await upload<Schemas["TrainingAccepted"]>(
      "/api/v1/agents/{agent_id}/train",
      { agent_id: agentId },
      form,
      (share) => change(id, { share }),
    );
    dismiss(id);
    void refreshDocuments();
  } catch (error) {
    change(id, { state: "failed", error: toProblem(error) });
  }
  startNext();
}
