import { useRead } from "../../api/queries";
import { t } from "../../texts";
import { Page } from "../../ui/page";
import { Loaded } from "../../ui/states";
import { AgentStatus } from "./list";

export function AgentScreen({ id }: { id: string }) {
  const agent = useRead("/api/v1/agents/{agent_id}", { path: { agent_id: id } });
  return (
    <Page
      title={agent.data?.name ?? t().agents.agent}
      parents={[{ label: t().rail.agents, to: "/agents" }]}
      beside={agent.data && <AgentStatus status={agent.data.status} />}
      isWide
    >
      <Loaded query={agent}>{({ system_prompt }) => <p>{system_prompt}</p>}</Loaded>
    </Page>
  );
}
