import { Library } from "lucide-preact";

import { t } from "../../../texts";
import { LinkButton } from "../../../ui/button";
import { formatNumber } from "../../../ui/format";
import { Section, Tile, Tiles } from "../../../ui/page";
import { Empty } from "../../../ui/states";
import type { TabProps } from "../tabs";

export function Knowledge({ agent }: TabProps) {
  const { document_count = 0, chunk_count = 0 } = agent.knowledge_base;
  const texts = t().agents;
  const to = `/knowledge/${agent.id}`;
  if (!document_count) {
    return (
      <Empty
        icon={Library}
        title={texts.noKnowledge}
        action={<LinkButton kind="quiet" to={to}>{texts.addDocuments}</LinkButton>}
      >
        {texts.noKnowledgeAbout}
      </Empty>
    );
  }
  return (
    <Section
      title={texts.tabs.knowledge}
      actions={<LinkButton to={to}>{texts.openKnowledge}</LinkButton>}
    >
      <Tiles>
        <Tile label={texts.documents} value={formatNumber(document_count)} />
        <Tile label={texts.passages} value={formatNumber(chunk_count)} />
      </Tiles>
    </Section>
  );
}
