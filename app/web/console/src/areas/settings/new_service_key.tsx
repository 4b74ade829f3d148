import { Trash2 } from "lucide-preact";
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useChange } from "../../api/queries";
import { may } from "../../api/session";
import type { Schemas } from "../../api/types";
import { BASE } from "../../base";
import { t } from "../../texts";
import { Button, IconButton } from "../../ui/button";
import { Snippet } from "../../ui/content";
import { momentOf } from "../../ui/date_filter";
import { Dialog } from "../../ui/dialog";
import { SelectField, Switch, TextField } from "../../ui/field";
import { RecordField } from "../../ui/record_picker";
import { useRecordName } from "../../ui/records";
import { Problem } from "../../ui/states";
import { givenRoles, type Role } from "../people/roles";
import { SERVICE_KEYS } from "./service_keys";

type Created = Schemas["CreatedServiceKey"];

export function NewServiceKey({ onClose }: { onClose: () => void }) {
  const [created, setCreated] = useState<Created | null>(null);
  return created
    ? <Shown created={created} onClose={onClose} />
    : <KeyForm onCreated={setCreated} onClose={onClose} />;
}

function KeyForm(
  { onCreated, onClose }: { onCreated: (key: Created) => void; onClose: () => void },
) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("agent_user");
  const [agentIds, setAgentIds] = useState<string[] | null>(null);
  const [lastDay, setLastDay] = useState("");
  const texts = t().settings.service;
  const body = {
    name,
    role,
    agent_ids: agentIds,
    expires_at: momentOf(lastDay, true) ?? null,
  };
  const create = useChange(() => api.post(SERVICE_KEYS, { body }), [SERVICE_KEYS]);
  const errors = create.error?.fields ?? {};
  const submit = async (event: Event) => {
    event.preventDefault();
    const key = await create.mutateAsync(undefined).catch(() => null);
    if (key) onCreated(key);
  };
  return (
    <Dialog
      title={texts.addTitle}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{t().common.cancel}</Button>
          <Button
            kind="primary"
            type="submit"
            form="new-service-key"
            busy={create.isPending}
            disabled={agentIds?.length === 0}
          >
            {texts.create}
          </Button>
        </>
      }
    >
      <form id="new-service-key" class="stack" onSubmit={submit}>
        <TextField
          label={t().common.name}
          hint={texts.nameHint}
          value={name}
          onInput={setName}
          error={errors.name}
          maxLength={100}
          autoFocus
          required
        />
        <SelectField
          label={t().common.role}
          hint={texts.roleHint}
          value={role}
          choices={givenRoles()}
          error={errors.role}
          onChange={(value) => setRole(value as Role)}
        />
        {may("agents:read") && (
          <AgentChoice value={agentIds} onChange={setAgentIds} error={errors.agent_ids} />
        )}
        <TextField
          label={texts.lastDay}
          hint={texts.lastDayHint}
          type="date"
          value={lastDay}
          onInput={setLastDay}
          error={errors.expires_at}
          isOptional
        />
        {Object.keys(errors).length === 0 && <Problem error={create.error} />}
      </form>
    </Dialog>
  );
}

function AgentChoice(
  { value, onChange, error }: {
    value: string[] | null;
    onChange: (value: string[] | null) => void;
    error: string | undefined;
  },
) {
  const texts = t().settings.service;
  return (
    <>
      <Switch
        label={texts.onlySome}
        hint={texts.onlySomeHint}
        value={value !== null}
        onChange={(isOn) => onChange(isOn ? [] : null)}
      />
      {value && (
        <fieldset class="group nested">
          <legend class="hidden">{t().rail.agents}</legend>
          {value.map((id) => (
            <ChosenAgent
              key={id}
              id={id}
              onRemove={() => onChange(value.filter((other) => other !== id))}
            />
          ))}
          <RecordField
            kind="agent"
            label={texts.addAgent}
            value=""
            onChange={(id) => onChange([...value, id])}
            without={value}
          />
          {value.length === 0 && <p class="hint">{texts.chooseAgents}</p>}
        </fieldset>
      )}
      {error && <p class="problem">{error}</p>}
    </>
  );
}

function ChosenAgent({ id, onRemove }: { id: string; onRemove: () => void }) {
  const name = useRecordName("agent", id);
  return (
    <div class="row">
      <span class="grow clip" dir="auto">{name}</span>
      <IconButton icon={Trash2} label={t().settings.service.removeAgent(name)} onClick={onRemove} />
    </div>
  );
}

// The key is shown once, so that only its button closes the dialog.
function Shown({ created, onClose }: { created: Created; onClose: () => void }) {
  const texts = t().settings.service;
  return (
    <Dialog
      title={texts.createdTitle}
      canDismiss={false}
      onClose={onClose}
      actions={<Button kind="primary" onClick={onClose}>{texts.stored}</Button>}
    >
      <p>{texts.createdAbout}</p>
      <Snippet text={created.key} label={texts.key} />
      <h3>{texts.tryIt}</h3>
      <Snippet text={commandOf(created.key)} label={texts.tryIt} />
    </Dialog>
  );
}

function commandOf(key: string): string {
  return `curl '${location.origin}${BASE}/api/v1/agents' \\\n  -H 'Authorization: Bearer ${key}'`;
}
