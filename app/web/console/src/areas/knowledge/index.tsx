import { useSubPath } from "../../ui/state";
import { AgentKnowledge } from "./agent";
import { KnowledgeList } from "./list";
import { DocumentScreen } from "./document";

export default function Knowledge() {
  const [agentId, documentId] = useSubPath();
  if (agentId && documentId) {
    return <DocumentScreen key={documentId} agentId={agentId} documentId={documentId} />;
  }
  return agentId ? <AgentKnowledge key={agentId} agentId={agentId} /> : <KnowledgeList />;
}
