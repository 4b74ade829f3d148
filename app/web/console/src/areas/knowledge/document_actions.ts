import { api, send } from "../../api/client";
import { deleteLater } from "./deletion";
import { DOCUMENT, type Document, refreshDocuments } from "./types";

const pathOf = (agentId: string, { id }: Document) => ({ agent_id: agentId, document_id: id });

export function deleteDocument(agentId: string, document: Document): void {
  deleteLater(document.id, document.name, async () => {
    await api.delete(DOCUMENT, { path: pathOf(agentId, document) });
    await refreshDocuments();
  });
}

export async function reindex(agentId: string, document: Document): Promise<void> {
  const path = pathOf(agentId, document);
  await api.post("/api/v1/agents/{agent_id}/documents/{document_id}/reindex", { path });
  await refreshDocuments();
}

// The request needs the token, which a link could not have.
export async function download(agentId: string, document: Document): Promise<void> {
  const path = pathOf(agentId, document);
  const response = await send(
    "GET",
    "/api/v1/agents/{agent_id}/documents/{document_id}/content",
    { path },
  );
  const link = window.document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = document.name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
