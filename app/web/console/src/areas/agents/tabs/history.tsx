import { t } from "../../../texts";
import { RecordHistory } from "../../../ui/history";
import { Section } from "../../../ui/page";
import { fieldLabels } from "../publish";
import type { TabProps } from "../tabs";

export function History({ agent }: TabProps) {
  const { tabs, webSearch } = t().agents;
  const labels = {
    ...fieldLabels(),
    tools: tabs.tools,
    sub_agents: tabs.subAgents,
    web_search: webSearch,
    log_settings: tabs.logging,
  };
  return (
    <Section title={t().agents.tabs.history} about={t().agents.historyAbout}>
      <RecordHistory kind="agent" recordId={agent.id} labels={labels} />
    </Section>
  );
}
