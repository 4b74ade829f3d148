import { t } from "../../../texts";
import { Section } from "../../../ui/page";
import type { TabProps } from "../tabs";

export function Embedding({ agent }: TabProps) {
  return <Section title={t().agents.tabs.embedding}>{agent.id && null}</Section>;
}
