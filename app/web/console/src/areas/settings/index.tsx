import { may } from "../../api/session";
import { t } from "../../texts";
import { Page } from "../../ui/page";
import { type Tab, Tabs } from "../../ui/small";
import { Instance } from "./instance";
import { Models } from "./models";
import { ProviderKeys } from "./provider_keys";
import { ServiceKeys } from "./service_keys";
import { Work } from "./work";

const TABS = [
  ["keys", "models:read", ProviderKeys],
  ["models", "models:read", Models],
  ["service", "admin:keys", ServiceKeys],
  ["work", "work:read", Work],
  ["instance", "settings:read", Instance],
] as const;

export default function Settings() {
  const texts = t().settings;
  const allowed = TABS.filter(([, permission]) => may(permission));
  return (
    <Page title={t().rail.settings}>
      <Tabs
        label={t().rail.settings}
        tabs={allowed.map(([key]): Tab => [key, texts.tabs[key]])}
      >
        {(open) => {
          const Content = allowed.find(([key]) => key === open)?.[2];
          return Content && <Content />;
        }}
      </Tabs>
    </Page>
  );
}
