// A new source: where its documents are, and how often to look.
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useChange } from "../../api/queries";
import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { SelectField, TextField } from "../../ui/field";
import { Problem } from "../../ui/states";
import {
  type Config,
  filled,
  KindFields,
  KINDS,
  MapProblems,
  SYNC_DEFAULTS,
  SyncFields,
} from "./source_fields";
import { type Source, SOURCES } from "./types";

export function NewSource({ agentId, onClose }: { agentId: string; onClose: () => void }) {
  const [type, setType] = useState<Source["type"]>("page");
  const [values, setValues] = useState({
    name: "",
    ...SYNC_DEFAULTS,
  });
  const [config, setConfig] = useState<Config>({});
  const [secrets, setSecrets] = useState<Config>({});
  const texts = t().knowledge;
  const create = useChange(
    (body: Schemas["CreateSource"]) => api.post(SOURCES, { path: { agent_id: agentId }, body }),
    [SOURCES],
  );
  const errors = create.error?.fields ?? {};
  const submit = (event: Event) => {
    event.preventDefault();
    const body = { ...values, type, config: filled(config), secrets: filled(secrets) };
    create.mutate(body, { onSuccess: onClose });
  };
  const set = (changes: Partial<typeof values>) => setValues({ ...values, ...changes });
  return (
    <Dialog
      title={texts.newSource}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{t().common.cancel}</Button>
          <Button kind="primary" type="submit" form="new-source" busy={create.isPending}>
            {texts.addSource}
          </Button>
        </>
      }
    >
      <form id="new-source" class="stack" autocomplete="off" onSubmit={submit}>
        <TextField
          label={t().common.name}
          value={values.name}
          onInput={(name) => set({ name })}
          maxLength={100}
          error={errors.name}
          required
        />
        <SelectField
          label={texts.sourceType}
          hint={texts.sourceTypesAbout[type]}
          value={type}
          choices={Object.entries(texts.sourceTypes)}
          onChange={(next) => {
            setType(next as Source["type"]);
            setConfig({});
            setSecrets({});
          }}
        />
        <KindFields
          kind={KINDS[type]}
          config={config}
          secrets={secrets}
          errors={errors}
          onConfig={setConfig}
          onSecrets={setSecrets}
        />
        <SyncFields values={values} errors={errors} onChange={set} />
        <MapProblems errors={errors} />
        {Object.keys(errors).length === 0 && <Problem error={create.error} />}
      </form>
    </Dialog>
  );
}
