import { Trash2, Wrench } from "lucide-preact";
import { useState } from "preact/hooks";

import { api } from "../../../api/client";
import { useChange, useRead } from "../../../api/queries";
import { may } from "../../../api/session";
import { t } from "../../../texts";
import { Button, IconButton, LinkButton } from "../../../ui/button";
import { Switch } from "../../../ui/field";
import { Section } from "../../../ui/page";
import { RecordField } from "../../../ui/record_picker";
import { Badge } from "../../../ui/small";
import { Empty, Loaded, Problem } from "../../../ui/states";
import { doLater } from "../../../ui/toast";
import type { TabProps } from "../tabs";
import { WebSearch } from "./web_search";

const TOOLS = "/v1/agents/{agent_id}/tools";

export function Tools({ agent, onChanged }: TabProps) {
  const path = { agent_id: agent.id };
  const texts = t().agents;
  const attached = useRead(TOOLS, { path });
  const [leaving, setLeaving] = useState<string[]>([]);
  const toggle = useChange(
    ({ id, is_enabled }: { id: string; is_enabled: boolean }) =>
      api.patch(`${TOOLS}/{tool_id}`, { path: { ...path, tool_id: id }, body: { is_enabled } }),
    [TOOLS],
  );
  const detach = useChange(
    (id: string) => api.delete(`${TOOLS}/{tool_id}`, { path: { ...path, tool_id: id } }),
    [TOOLS],
  );
  const remove = (id: string, name: string) =>
    doLater(texts.detached(name), {
      apply: () => setLeaving((all) => [...all, id]),
      revert: () => setLeaving((all) => all.filter((other) => other !== id)),
      commit: () => detach.mutate(id, { onSuccess: onChanged }),
    });
  return (
    <>
      <Section title={texts.tabs.tools} about={texts.toolsAbout}>
        <Loaded query={attached} rows={3}>
          {({ data }) => {
            const shown = data.filter(({ tool_id }) => !leaving.includes(tool_id));
            return (
              <>
                {shown.length === 0
                  ? (
                    <Empty
                      icon={Wrench}
                      title={texts.noTools}
                      action={may("tools:write") && (
                        <LinkButton to="/tools?new=1">{t().common.newTool}</LinkButton>
                      )}
                    >
                      {texts.noToolsAbout}
                    </Empty>
                  )
                  : (
                    <ul class="rows">
                      {shown.map(({ tool_id, tool_name: name, tool_type, is_enabled }) => (
                        <li key={tool_id}>
                          <Switch
                            label={name}
                            value={is_enabled}
                            onChange={(value) =>
                              toggle.mutate({ id: tool_id, is_enabled: value })}
                          />
                          <Badge>{t().toolTypes[tool_type]}</Badge>
                          <IconButton
                            icon={Trash2}
                            label={texts.detach(name)}
                            onClick={() => remove(tool_id, name)}
                          />
                        </li>
                      ))}
                    </ul>
                  )}
                <Attach agent={agent} attached={data.map(({ tool_id }) => tool_id)} />
              </>
            );
          }}
        </Loaded>
        <Problem error={toggle.error ?? detach.error} />
      </Section>
      <WebSearch agent={agent} onChanged={onChanged} />
    </>
  );
}

function Attach({ agent, attached }: { agent: TabProps["agent"]; attached: string[] }) {
  const [chosen, setChosen] = useState("");
  const attach = useChange(
    (tool_id: string) => api.post(TOOLS, { path: { agent_id: agent.id }, body: { tool_id } }),
    [TOOLS],
  );
  if (!may("tools:read")) return null;
  return (
    <form
      class="inline-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (chosen) void attach.mutateAsync(chosen).then(() => setChosen(""), () => {});
      }}
    >
      <RecordField
        kind="tool"
        label={t().agents.attachTool}
        value={chosen}
        onChange={setChosen}
        without={attached}
      />
      <Button type="submit" busy={attach.isPending} disabled={!chosen}>{t().agents.attach}</Button>
      <Problem error={attach.error} />
    </form>
  );
}
