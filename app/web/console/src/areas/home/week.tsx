import { useRead } from "../../api/queries";
import { t } from "../../texts";
import { LinkButton } from "../../ui/button";
import { Section } from "../../ui/page";
import { Loaded } from "../../ui/states";
import { PATH } from "../usage/series";
import { UsageTiles } from "../usage/tiles";

export function Week() {
  const query = useRead(PATH, { query: { period: "7d" } });
  return (
    <Section
      title={t().home.week}
      actions={<LinkButton to="/usage" kind="plain">{t().home.allUsage}</LinkButton>}
    >
      <Loaded query={query} rows={2}>
        {({ totals }) => <UsageTiles totals={totals} to="/usage?period=7d" />}
      </Loaded>
    </Section>
  );
}
