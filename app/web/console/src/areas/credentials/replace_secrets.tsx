import { useState } from "preact/hooks";

import { api, tagOf } from "../../api/client";
import { useChange } from "../../api/queries";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import type { Fields } from "../../ui/schema";
import { Problem } from "../../ui/states";
import { notify } from "../../ui/toast";
import { useValidity } from "../../ui/validity";
import { SecretsForm } from "./secrets_form";
import type { Credential } from "./types";

const PATH = "/v1/credentials/{credential_id}/secrets";

export function ReplaceSecrets(
  { credential, onClose }: { credential: Credential; onClose: () => void },
) {
  const [secrets, setSecrets] = useState<Fields>({});
  const validity = useValidity();
  const replace = useChange(
    () =>
      api.put(PATH, { path: { credential_id: credential.id }, body: { secrets } }, {
        ifMatch: tagOf(credential),
      }),
    [
      "/v1/credentials",
      "/v1/credentials/{credential_id}",
      "/v1/credentials/{credential_id}/audit",
    ],
  );
  const texts = t().credentials;
  const errors = replace.error?.fields ?? {};
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!validity.isValid) return;
    const done = await replace.mutateAsync(undefined).catch(() => null);
    if (!done) return;
    onClose();
    notify(texts.replaced);
  };
  return (
    <Dialog
      title={texts.replace}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{t().common.cancel}</Button>
          <Button
            kind="primary"
            type="submit"
            form="replace-secrets"
            busy={replace.isPending}
            disabled={!validity.isValid}
          >
            {texts.replace}
          </Button>
        </>
      }
    >
      <form id="replace-secrets" class="stack" autocomplete="off" onSubmit={submit}>
        <p class="soft">{texts.replaceAbout}</p>
        <SecretsForm
          type={credential.type}
          value={secrets}
          onChange={setSecrets}
          errors={errors}
          validity={validity}
        />
        {Object.keys(errors).length === 0 && <Problem error={replace.error} />}
      </form>
    </Dialog>
  );
}
