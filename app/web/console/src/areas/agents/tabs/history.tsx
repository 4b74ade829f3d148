import { t } from "../../../texts";
import { RecordHistory } from "../../../ui/history";
import { Section } from "../../../ui/page";
import { fieldLabels } from "../publish";
import type { TabProps } from "../tabs";

export function History({ agent }: TabProps) {
  return (
    <Section title={t().agents.tabs.history} about={t().agents.historyAbout}>
      <RecordHistory kind="agent" recordId={agent.id} labels={fieldLabels()} />
    </Section>
  );
}
