import { api } from "../../../api/client";
import { useChange, useRead } from "../../../api/queries";
import type { Schemas } from "../../../api/types";
import { t } from "../../../texts";
import { NumberField, SelectField, Switch } from "../../../ui/field";
import { Section } from "../../../ui/page";
import { Loaded, Problem } from "../../../ui/states";
import type { TabProps } from "../tabs";

const CONFIG = "/api/v1/agents/{agent_id}/websearch/config";
type Config = Schemas["UpdateWebSearchConfig"];
type Engine = NonNullable<Config["search_engine"]>;

export function WebSearch({ agent }: TabProps) {
  const path = { agent_id: agent.id };
  const texts = t().agents;
  const config = useRead(CONFIG, { path });
  const change = useChange((body: Config) => api.put(CONFIG, { path, body }), [CONFIG]);
  return (
    <Section title={texts.webSearch} about={texts.webSearchAbout}>
      <Loaded query={config} rows={2}>
        {({ enabled, search_engine = "duckduckgo", max_results = 5, safe_search = true }) => (
          <div class="stack">
            <Switch
              label={texts.webSearchOn}
              value={enabled ?? false}
              onChange={(value) => change.mutate({ enabled: value })}
            />
            {enabled && (
              <>
                <div class="columns">
                  <SelectField
                    label={texts.searchEngine}
                    value={search_engine}
                    choices={["duckduckgo", "searxng", "brave", "tavily"].map((
                      name,
                    ) => [name, name])}
                    onChange={(value) => change.mutate({ search_engine: value as Engine })}
                  />
                  <NumberField
                    label={texts.maxResults}
                    value={max_results}
                    min={1}
                    max={20}
                    onInput={() => {}}
                    onChange={(event) =>
                      change.mutate({ max_results: Number(event.currentTarget.value) })}
                  />
                </div>
                <Switch
                  label={texts.safeSearch}
                  value={safe_search}
                  onChange={(value) => change.mutate({ safe_search: value })}
                />
              </>
            )}
          </div>
        )}
      </Loaded>
      <Problem error={change.error} />
    </Section>
  );
}
