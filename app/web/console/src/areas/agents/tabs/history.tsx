import { t } from "../../../texts";
import { Section } from "../../../ui/page";
import type { TabProps } from "../tabs";

export function History({ agent }: TabProps) {
  return <Section title={t().agents.tabs.history}>{agent.id && null}</Section>;
}
