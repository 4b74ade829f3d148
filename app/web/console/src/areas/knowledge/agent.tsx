// What one agent knows: its documents, the sources that keep them fresh, and a test of retrieval.
import { useRead } from "../../api/queries";
import { t } from "../../texts";
import { LinkButton } from "../../ui/button";
import { Page } from "../../ui/page";
import { Tabs } from "../../ui/small";
import { Failure } from "../../ui/states";
import { Documents } from "./documents";
import { RetrievalSettings } from "./settings";
import { RetrievalTest } from "./retrieval_test";
import { Sources } from "./sources";
import { AGENT } from "./types";

export function AgentKnowledge({ agentId }: { agentId: string }) {
  const agent = useRead(AGENT, { path: { agent_id: agentId } });
  const texts = t().knowledge;
  const parents = [{ label: t().rail.knowledge, to: "/knowledge" }];
  if (agent.error && !agent.data) {
    return (
      <Page title={texts.agent} parents={parents}>
        <Failure error={agent.error} onRetry={agent.refetch} />
      </Page>
    );
  }
  const tabs = (["documents", "sources", "test", "settings"] as const)
    .map((key) => [key, texts.tabs[key]] as const);
  return (
    <Page
      title={agent.data?.name ?? texts.agent}
      parents={parents}
      actions={<LinkButton to={`/agents/${agentId}`}>{texts.openAgent}</LinkButton>}
    >
      <Tabs label={t().rail.knowledge} tabs={tabs}>
        {(key) =>
          key === "sources"
            ? <Sources agentId={agentId} />
            : key === "test"
            ? <RetrievalTest agentId={agentId} />
            : key === "settings"
            ? <RetrievalSettings agentId={agentId} />
            : <Documents agentId={agentId} />}
      </Tabs>
    </Page>
  );
}
