// Where the documents of a source are, and how often to look: changed.
import { useState } from "preact/hooks";

import { api, tagOf } from "../../api/client";
import { useChange, useRead } from "../../api/queries";
import type { Body } from "../../api/types";
import { t } from "../../texts";
import { Dialog } from "../../ui/dialog";
import { EditDialog } from "../../ui/edit_state";
import { useEditor } from "../../ui/editor";
import { TextField } from "../../ui/field";
import { Loaded } from "../../ui/states";
import { type Config, filled, KindFields, KINDS, MapProblems, SyncFields } from "./source_fields";
import { SOURCE, type Source, SOURCES } from "./types";

type Change = Body<typeof SOURCE, "patch">;
// Of secrets only the names: what is typed is also kept in this browser.
type Values = Pick<Source, "name" | "schedule" | "apply" | "max_documents"> & {
  config: Config;
  secrets: string[];
};

function toValues({ name, schedule, apply, max_documents, config }: Source): Values {
  return { name, schedule, apply, max_documents, config: config as Config, secrets: [] };
}

// Read by itself: a row of the list has no tag.
export function EditSource(
  { agentId, source, onClose }: { agentId: string; source: Source; onClose: () => void },
) {
  const query = useRead(SOURCE, { path: { agent_id: agentId, source_id: source.id } });
  if (query.data) return <SourceEditor agentId={agentId} source={query.data} onClose={onClose} />;
  return (
    <Dialog title={source.name} onClose={onClose}>
      <Loaded query={query} rows={6}>{() => null}</Loaded>
    </Dialog>
  );
}

function SourceEditor(
  { agentId, source, onClose }: { agentId: string; source: Source; onClose: () => void },
) {
  const path = { agent_id: agentId, source_id: source.id };
  const [secrets, setSecrets] = useState<Config>({});
  const texts = t().knowledge;
  const store = useChange(
    ({ body, ifMatch }: { body: Change; ifMatch: string | undefined }) =>
      api.patch(SOURCE, { path, body }, { ifMatch }),
    [SOURCE, SOURCES],
  );
  const editor = useEditor({
    name: `source ${source.id}`,
    record: source,
    toValues,
    save: ({ config, secrets: names, ...changes }, origin) =>
      store.mutateAsync({
        body: {
          ...changes,
          ...(config && { config: filled(config) }),
          ...(names && { secrets: filled(secrets) }),
        },
        ifMatch: tagOf(origin),
      }),
    reload: () => api.get(SOURCE, { path }),
    onSaved: onClose,
  });
  const { values, set, errors } = editor;
  const labels = {
    name: t().common.name,
    schedule: texts.schedule,
    apply: texts.apply,
    max_documents: texts.maxDocuments,
    config: texts.tabs.settings,
    secrets: texts.secretsOf,
  };
  return (
    <EditDialog
      title={source.name}
      editor={editor}
      toValues={toValues}
      labels={labels}
      onClose={onClose}
    >
      <TextField
        label={t().common.name}
        value={values.name}
        onInput={(name) => set({ name })}
        maxLength={100}
        error={errors.name}
        required
      />
      <KindFields
        kind={KINDS[source.type]}
        config={values.config}
        secrets={secrets}
        hint={source.has_secrets ? texts.secretsStored : undefined}
        errors={errors}
        onConfig={(config) => set({ config })}
        onSecrets={(next) => {
          setSecrets(next);
          set({ secrets: Object.keys(filled(next)) });
        }}
      />
      <SyncFields values={values} errors={errors} onChange={set} />
      <MapProblems errors={errors} />
    </EditDialog>
  );
}
