import { t } from "../../texts";
import { Page } from "../../ui/page";
import { Tabs } from "../../ui/small";
import { Limits } from "./limits";
import { OverTime } from "./over_time";

export default function Usage() {
  const texts = t().usage;
  return (
    <Page title={t().rail.usage}>
      <Tabs
        label={t().rail.usage}
        tabs={[["time", texts.tabs.time], ["limits", texts.tabs.limits]]}
      >
        {(open) => open === "limits" ? <Limits /> : <OverTime />}
      </Tabs>
    </Page>
  );
}
