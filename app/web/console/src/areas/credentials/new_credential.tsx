import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useChange } from "../../api/queries";
import { href } from "../../base";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { SelectField, TextArea, TextField } from "../../ui/field";
import type { Fields } from "../../ui/schema";
import { Problem } from "../../ui/states";
import { useValidity } from "../../ui/validity";
import { DestinationFields, tidy } from "./destination_fields";
import { SecretsForm } from "./secrets_form";
import type { CredentialType } from "./types";

export function NewCredential({ onClose }: { onClose: () => void }) {
  const { route } = useLocation();
  const [type, setType] = useState<CredentialType>("api_key");
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [secrets, setSecrets] = useState<Fields>({});
  const [metadata, setMetadata] = useState<Fields>({});
  const validity = useValidity();
  const create = useChange(
    () =>
      api.post("/v1/credentials", {
        body: { name, type, description, secrets, metadata: tidy(metadata) },
      }),
    ["/v1/credentials", "/v1/credentials/audit"],
  );
  const texts = t().credentials;
  const errors = create.error?.fields ?? {};
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!validity.isValid) return;
    const credential = await create.mutateAsync(undefined).catch(() => null);
    if (credential) route(href(`/credentials/${credential.id}`));
  };
  return (
    <Dialog
      title={texts.newCredential}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{t().common.cancel}</Button>
          <Button
            kind="primary"
            type="submit"
            form="new-credential"
            busy={create.isPending}
            disabled={!validity.isValid}
          >
            {texts.create}
          </Button>
        </>
      }
    >
      <form id="new-credential" class="stack" autocomplete="off" onSubmit={submit}>
        <SelectField
          label={texts.type}
          hint={texts.typeAbout[type]}
          value={type}
          choices={Object.entries(texts.types)}
          onChange={(value) => {
            setType(value as CredentialType);
            setSecrets({});
            create.reset();
          }}
        />
        <TextField
          label={t().common.name}
          value={name}
          onInput={setName}
          error={errors.name}
          maxLength={100}
          autoFocus
          required
        />
        <TextArea
          label={t().common.description}
          value={description}
          onInput={setDescription}
          error={errors.description}
          maxLength={2000}
          rows={2}
          isOptional
        />
        <SecretsForm
          key={type}
          type={type}
          value={secrets}
          onChange={setSecrets}
          errors={errors}
          validity={validity}
        />
        <DestinationFields
          type={type}
          metadata={metadata}
          onChange={setMetadata}
          errors={errors}
        />
        {Object.keys(errors).length === 0 && <Problem error={create.error} />}
      </form>
    </Dialog>
  );
}
