// A new source: where its documents are, and how often to look.
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useChange } from "../../api/queries";
import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { NumberField, PasswordField, SelectField, TextField } from "../../ui/field";
import { Problem } from "../../ui/states";
import { type Source, SOURCES } from "./types";

type Config = Record<string, string>;
type Texts = ReturnType<typeof t>["knowledge"];

interface Kind {
  config: (keyof Texts["config"])[];
  optional: string[];
  secrets: (keyof Texts["secrets"])[];
}

const KINDS: Record<Source["type"], Kind> = {
  page: { config: ["url"], optional: [], secrets: [] },
  sitemap: { config: ["url"], optional: [], secrets: [] },
  feed: { config: ["url"], optional: [], secrets: [] },
  s3: {
    config: ["endpoint", "bucket", "prefix", "region"],
    optional: ["prefix", "region"],
    secrets: ["access_key_id", "secret_access_key"],
  },
  git_archive: { config: ["url", "folder"], optional: ["folder"], secrets: ["token"] },
};

const filled = (values: Config) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value.trim()));

export function NewSource({ agentId, onClose }: { agentId: string; onClose: () => void }) {
  const [type, setType] = useState<Source["type"]>("page");
  const [values, setValues] = useState({
    name: "",
    schedule: "daily" as Source["schedule"],
    apply: "automatic" as Source["apply"],
    max_documents: 200,
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
        <div class="columns">
          <SelectField
            label={texts.schedule}
            value={values.schedule}
            choices={Object.entries(texts.schedules)}
            onChange={(schedule) => set({ schedule: schedule as Source["schedule"] })}
            error={errors.schedule}
          />
          <NumberField
            label={texts.maxDocuments}
            value={values.max_documents}
            min={1}
            max={1000}
            onInput={(number) => set({ max_documents: number ?? 200 })}
            error={errors.max_documents}
          />
        </div>
        <SelectField
          label={texts.apply}
          value={values.apply}
          choices={Object.entries(texts.applies)}
          onChange={(apply) => set({ apply: apply as Source["apply"] })}
          error={errors.apply}
        />
        {errors.config && <p class="problem" role="alert" dir="auto">{errors.config}</p>}
        {errors.secrets && <p class="problem" role="alert" dir="auto">{errors.secrets}</p>}
        {Object.keys(errors).length === 0 && <Problem error={create.error} />}
      </form>
    </Dialog>
  );
}

function KindFields(
  { kind, config, secrets, errors, onConfig, onSecrets }: {
    kind: Kind;
    config: Config;
    secrets: Config;
    errors: Record<string, string>;
    onConfig: (config: Config) => void;
    onSecrets: (secrets: Config) => void;
  },
) {
  const texts = t().knowledge;
  return (
    <>
      {kind.config.map((name) => (
        <TextField
          key={name}
          label={texts.config[name]}
          dir="ltr"
          value={config[name] ?? ""}
          onInput={(text) => onConfig({ ...config, [name]: text })}
          error={errors[`config.${name}`]}
          isOptional={kind.optional.includes(name)}
          required={!kind.optional.includes(name)}
        />
      ))}
      {kind.secrets.map((name) => (
        <PasswordField
          key={name}
          label={texts.secrets[name]}
          hint={texts.secretHint}
          autocomplete="off"
          value={secrets[name] ?? ""}
          onInput={(text) => onSecrets({ ...secrets, [name]: text })}
          error={errors[`secrets.${name}`]}
        />
      ))}
    </>
  );
}
