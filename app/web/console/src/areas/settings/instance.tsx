import { Lock } from "lucide-preact";

import { toCurl } from "../../api/client";
import { useRead } from "../../api/queries";
import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { CopyButton, CopyText } from "../../ui/copy";
import { Filter, SearchField } from "../../ui/field";
import { Section } from "../../ui/page";
import { Badge } from "../../ui/small";
import { useFilters } from "../../ui/state";
import { Empty, Loaded } from "../../ui/states";

type Setting = Schemas["SettingView"];
const PATH = "/api/v1/settings";

export function Instance() {
  const [filters, setFilters] = useFilters();
  const query = useRead(PATH, {}, { staleTime: 60_000 });
  const texts = t().settings.instance;
  return (
    <>
      <p class="about">{texts.about}</p>
      <div class="bar">
        <div class="filters grow">
          <SearchField
            value={filters.search ?? ""}
            onInput={(search) => setFilters({ search })}
          />
          <Filter
            label={texts.source}
            value={filters.source}
            choices={Object.entries(texts.sources)}
            onChange={(source) => setFilters({ source })}
          />
        </div>
        <CopyButton text={toCurl("GET", PATH)} label={t().common.copyCurl} />
      </div>
      <Loaded query={query}>
        {({ data }) => (
          <Groups
            settings={data.filter((setting) => matches(setting, filters))}
            onClear={() => setFilters({ search: undefined, source: undefined })}
          />
        )}
      </Loaded>
    </>
  );
}

function matches(setting: Setting, { search, source }: Record<string, string | undefined>) {
  if (source && setting.source !== source) return false;
  const text = [setting.name, setting.description, setting.variable, setting.group].join(" ");
  return text.toLowerCase().includes((search ?? "").trim().toLowerCase());
}

function Groups({ settings, onClear }: { settings: Setting[]; onClear: () => void }) {
  if (!settings.length) {
    return (
      <Empty
        title={t().common.nothingFound}
        action={<Button onClick={onClear}>{t().common.clearFilters}</Button>}
      />
    );
  }
  const names = [...new Set(settings.map(({ group }) => group))];
  return (
    <>
      {names.map((name) => (
        <Section key={name} title={name}>
          <dl class="card settings">
            {settings.filter(({ group }) => group === name).map((setting) => (
              <SettingRow key={setting.scope + setting.name} setting={setting} />
            ))}
          </dl>
        </Section>
      ))}
    </>
  );
}

function SettingRow({ setting }: { setting: Setting }) {
  return (
    <div>
      <dt>
        <code>{setting.name}</code>
        <span class="hint">{setting.description}</span>
      </dt>
      <dd>
        <Value setting={setting} />
        <Source setting={setting} />
      </dd>
    </div>
  );
}

function Value({ setting }: { setting: Setting }) {
  const texts = t().settings.instance;
  const { value, effective, is_secret, is_set } = setting;
  if (is_secret) return <span class="soft">{is_set ? texts.secretSet : texts.secretUnset}</span>;
  const follows = effective !== null && effective !== undefined &&
    JSON.stringify(effective) !== JSON.stringify(value);
  return (
    <span dir="auto">
      {toText(value)}
      {follows && <span class="soft">{` ${texts.effective(toText(effective))}`}</span>}
    </span>
  );
}

function toText(value: unknown): string {
  if (value === null || value === undefined || value === "") return "–";
  if (typeof value === "boolean") return value ? t().common.on : t().common.off;
  if (Array.isArray(value)) return value.map(toText).join(", ") || "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

// Where the value comes from, and where it is changed.
function Source({ setting: { source, variable, scope } }: { setting: Setting }) {
  const texts = t().settings.instance;
  if (source === "environment") {
    return (
      <span class="row hint">
        <Badge tone="accent">
          <Lock aria-hidden="true" /> {texts.sources.environment}
        </Badge>
        {variable && <CopyText text={variable} />}
        {texts.notEditable}
      </span>
    );
  }
  return (
    <span class="row hint">
      <Badge>{texts.sources[source]}</Badge>
      {scope === "tenant" ? texts.ofTenant[source] : variable && <CopyText text={variable} />}
    </span>
  );
}
