import { queries, refresh } from "../../api/queries";
import type { Schemas } from "../../api/types";

export type Document = Schemas["DocumentView"];
export type Source = Schemas["DocumentSourceView"];

export const AGENT = "/api/v1/agents/{agent_id}";
export const STATUS = "/api/v1/agents/{agent_id}/status";
export const DOCUMENTS = "/api/v1/agents/{agent_id}/documents";
export const DOCUMENT = "/api/v1/agents/{agent_id}/documents/{document_id}";
export const CHUNKS = "/api/v1/agents/{agent_id}/documents/{document_id}/chunks";
export const SOURCES = "/api/v1/agents/{agent_id}/sources";
export const SOURCE = "/api/v1/agents/{agent_id}/sources/{source_id}";

// How often the page asks while documents are read.
export const WORKING_MS = 1_500;

export function isWorking({ status, progress }: Document): boolean {
  return status === "pending" || status === "processing" || progress.stage === "refining";
}

export function refreshDocuments(): Promise<unknown> {
  return refresh(queries, [DOCUMENTS, DOCUMENT, CHUNKS, AGENT, STATUS]);
}
