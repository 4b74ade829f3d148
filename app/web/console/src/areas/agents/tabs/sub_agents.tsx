import { Bot, Trash2 } from "lucide-preact";
import { useState } from "preact/hooks";

import { api } from "../../../api/client";
import { useChange, useRead } from "../../../api/queries";
import { may } from "../../../api/session";
import type { Schemas } from "../../../api/types";
import { t } from "../../../texts";
import { Button, IconButton } from "../../../ui/button";
import { Confirm, Dialog } from "../../../ui/dialog";
import { Switch, TextArea, TextField } from "../../../ui/field";
import { Section } from "../../../ui/page";
import { RecordField } from "../../../ui/record_picker";
import { Badge } from "../../../ui/small";
import { Empty, Loaded, Problem } from "../../../ui/states";
import type { TabProps } from "../tabs";

const SUB_AGENTS = "/api/v1/agents/{agent_id}/sub-agents";
type SubAgent = Schemas["SubAgentView"];

export function SubAgents({ agent, onChanged }: TabProps) {
  const path = { agent_id: agent.id };
  const texts = t().agents;
  const list = useRead(SUB_AGENTS, { path });
  const [dialog, setDialog] = useState<"attach" | "create" | SubAgent | null>(null);
  const toggle = useChange(
    ({ id, is_enabled }: { id: string; is_enabled: boolean }) =>
      api.patch(`${SUB_AGENTS}/{child_id}`, {
        path: { ...path, child_id: id },
        body: { is_enabled },
      }),
    [SUB_AGENTS],
  );
  const close = () => {
    setDialog(null);
    onChanged();
  };
  const actions = (
    <>
      <Button onClick={() => setDialog("attach")}>{texts.attachAgent}</Button>
      <Button onClick={() => setDialog("create")}>{texts.createSubAgent}</Button>
    </>
  );
  return (
    <Section title={texts.tabs.subAgents} about={texts.subAgentsAbout} actions={actions}>
      <Loaded query={list} rows={2}>
        {({ data }) =>
          data.length === 0
            ? <Empty icon={Bot} title={texts.noSubAgents}>{texts.noSubAgentsAbout}</Empty>
            : (
              <ul class="rows">
                {data.map((child) => (
                  <li key={child.id}>
                    <Switch
                      label={child.name}
                      hint={child.delegation_prompt}
                      value={child.is_enabled}
                      onChange={(is_enabled) => toggle.mutate({ id: child.id, is_enabled })}
                    />
                    <Badge>{texts.relationships[child.relationship_type]}</Badge>
                    <IconButton
                      icon={Trash2}
                      label={texts.removeSubAgent(child.name)}
                      onClick={() => setDialog(child)}
                    />
                  </li>
                ))}
              </ul>
            )}
      </Loaded>
      <Problem error={toggle.error} />
      {dialog === "attach" && <AttachDialog agentId={agent.id} onClose={close} />}
      {dialog === "create" && (
        <CreateDialog agentId={agent.id} model={agent.primary_model} onClose={close} />
      )}
      {dialog && typeof dialog === "object" && (
        <RemoveDialog agentId={agent.id} child={dialog} onClose={close} />
      )}
    </Section>
  );
}

function AttachDialog({ agentId, onClose }: { agentId: string; onClose: () => void }) {
  const texts = t().agents;
  const [chosen, setChosen] = useState("");
  const [prompt, setPrompt] = useState("");
  const attach = useChange(
    () =>
      api.post(`${SUB_AGENTS}/attach`, {
        path: { agent_id: agentId },
        body: { agent_id: chosen, delegation_prompt: prompt },
      }),
    [SUB_AGENTS],
  );
  return (
    <Dialog
      title={texts.attachAgent}
      onClose={onClose}
      actions={
        <Button
          kind="primary"
          busy={attach.isPending}
          disabled={!chosen}
          onClick={() => chosen && attach.mutate(undefined, { onSuccess: onClose })}
        >
          {texts.attach}
        </Button>
      }
    >
      <RecordField
        kind="agent"
        label={texts.agent}
        value={chosen}
        onChange={setChosen}
        without={[agentId]}
      />
      <DelegationPrompt value={prompt} onInput={setPrompt} />
      <Problem error={attach.error} />
    </Dialog>
  );
}

function DelegationPrompt(
  { value, onInput }: { value: string; onInput: (value: string) => void },
) {
  return (
    <TextArea
      label={t().agents.delegationPrompt}
      hint={t().agents.delegationHint}
      value={value}
      onInput={onInput}
      isOptional
    />
  );
}

function CreateDialog(
  { agentId, model, onClose }: { agentId: string; model: string; onClose: () => void },
) {
  const texts = t().agents;
  const [name, setName] = useState("");
  const [prompt, setPrompt] = useState("");
  const [delegation, setDelegation] = useState("");
  const create = useChange(
    () =>
      api.post(`${SUB_AGENTS}/direct`, {
        path: { agent_id: agentId },
        body: {
          name,
          primary_model: model,
          system_prompt: prompt,
          delegation_prompt: delegation,
        },
      }),
    [SUB_AGENTS],
  );
  const errors = create.error?.fields ?? {};
  const submit = (event: Event) => {
    event.preventDefault();
    create.mutate(undefined, { onSuccess: onClose });
  };
  return (
    <Dialog
      title={texts.createSubAgent}
      onClose={onClose}
      actions={
        <Button kind="primary" type="submit" form="sub-agent" busy={create.isPending}>
          {texts.create}
        </Button>
      }
    >
      <form id="sub-agent" class="stack" onSubmit={submit}>
        <TextField
          label={t().common.name}
          value={name}
          onInput={setName}
          error={errors.name}
          required
        />
        <TextArea
          label={texts.prompt}
          value={prompt}
          onInput={setPrompt}
          error={errors.system_prompt}
          required
        />
        <DelegationPrompt value={delegation} onInput={setDelegation} />
        {Object.keys(errors).length === 0 && <Problem error={create.error} />}
      </form>
    </Dialog>
  );
}

function RemoveDialog(
  { agentId, child, onClose }: { agentId: string; child: SubAgent; onClose: () => void },
) {
  const texts = t().agents;
  const isOwn = child.relationship_type === "direct";
  const remove = useChange(
    () =>
      api.delete(`${SUB_AGENTS}/{child_id}`, {
        path: { agent_id: agentId, child_id: child.id },
      }),
    [SUB_AGENTS],
  );
  if (isOwn && !may("agents:delete")) {
    return (
      <Dialog title={texts.removeSubAgent(child.name)} onClose={onClose}>
        <p>{t().errors.forbidden}</p>
      </Dialog>
    );
  }
  return (
    <Confirm
      title={texts.removeSubAgent(child.name)}
      action={texts.remove}
      isBusy={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() => remove.mutate(undefined, { onSuccess: onClose })}
    >
      <p>{isOwn ? texts.removeDirectAbout : texts.removeAttachedAbout}</p>
    </Confirm>
  );
}
