// What the user has read.
import { api } from "../../api/client";
import { patchRows } from "../../api/queries";
import { PATH } from "./filters";

const READ = "/api/v1/conversations/{conversation_id}/read";

export async function markAsRead(id: string): Promise<void> {
  await api.post(READ, { path: { conversation_id: id } });
  show(id, false);
}

export async function markAsUnread(id: string): Promise<void> {
  await api.delete(READ, { path: { conversation_id: id } });
  show(id, true);
}

export async function markAllAsRead(): Promise<void> {
  await api.post("/api/v1/conversations/read-all", { body: { until: new Date().toISOString() } });
  patchRows(PATH, (row) => ({ ...row, unread: false }));
}

function show(id: string, unread: boolean): void {
  patchRows(PATH, (row) => (row.id === id ? { ...row, unread } : row));
}
