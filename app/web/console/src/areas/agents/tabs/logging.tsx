import { api, tagOf } from "../../../api/client";
import { useChange, useRead } from "../../../api/queries";
import type { Schemas } from "../../../api/types";
import { t } from "../../../texts";
import { NumberField, Switch } from "../../../ui/field";
import { Section } from "../../../ui/page";
import { Loaded } from "../../../ui/states";
import { useEditor } from "../../../ui/editor";
import { EditNotes, SaveButton, SaveState } from "../../../ui/edit_state";
import type { TabProps } from "../tabs";

const SETTINGS = "/api/v1/agents/{agent_id}/log-settings";
type Settings = Schemas["LogSettings"];

export function Logging({ agent }: TabProps) {
  const settings = useRead(SETTINGS, { path: { agent_id: agent.id } });
  return (
    <Section title={t().agents.tabs.logging} about={t().agents.loggingAbout}>
      <Loaded query={settings} rows={4}>
        {(record) => <LoggingForm agentId={agent.id} record={record} />}
      </Loaded>
    </Section>
  );
}

const toValues = (record: Settings): Settings => record;

function LoggingForm({ agentId, record }: { agentId: string; record: Settings }) {
  const path = { agent_id: agentId };
  const texts = t().agents;
  const store = useChange(
    ({ body, ifMatch }: { body: Partial<Settings>; ifMatch: string | undefined }) =>
      api.put(SETTINGS, { path, body }, { ifMatch }),
    [SETTINGS],
  );
  const editor = useEditor({
    name: `logging ${agentId}`,
    record,
    toValues,
    save: (body, origin) => store.mutateAsync({ body, ifMatch: tagOf(origin) }),
    reload: () => api.get(SETTINGS, { path }),
  });
  const { values, set, errors } = editor;
  const labels = {
    log_messages: texts.logMessages,
    log_tool_calls: texts.logToolCalls,
    log_token_usage: texts.logTokenUsage,
    retention_days: texts.retentionDays,
  };
  return (
    <div class="stack narrow">
      <EditNotes editor={editor} toValues={toValues} labels={labels} />
      <Switch
        label={labels.log_messages}
        value={values.log_messages}
        onChange={(log_messages) => set({ log_messages })}
      />
      <Switch
        label={labels.log_tool_calls}
        value={values.log_tool_calls}
        onChange={(log_tool_calls) => set({ log_tool_calls })}
      />
      <Switch
        label={labels.log_token_usage}
        value={values.log_token_usage}
        onChange={(log_token_usage) => set({ log_token_usage })}
      />
      <NumberField
        label={labels.retention_days}
        hint={texts.retentionHint}
        value={values.retention_days}
        min={1}
        onInput={(days) => set({ retention_days: days ?? 1 })}
        error={errors.retention_days}
      />
      <div class="actions">
        <SaveButton editor={editor} kind="quiet" />
        <SaveState editor={editor} />
      </div>
    </div>
  );
}
