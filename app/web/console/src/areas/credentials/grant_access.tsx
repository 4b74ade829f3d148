import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useChange } from "../../api/queries";
import { may } from "../../api/session";
import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { SelectField, TextField } from "../../ui/field";
import { RecordField } from "../../ui/record_picker";
import { Problem } from "../../ui/states";
import type { Credential } from "./types";

type Kind = Schemas["AccessRule"]["integration_type"];

const KINDS: Kind[] = ["tool", "agent", "workflow", "channel"];
const RULES = "/v1/credentials/{credential_id}/access";

export function GrantAccess(
  { credential, onClose }: { credential: Credential; onClose: () => void },
) {
  const [kind, setKind] = useState<Kind>("tool");
  const [id, setId] = useState("");
  const grant = useChange(
    () =>
      api.post(RULES, {
        path: { credential_id: credential.id },
        body: { integration_type: kind, integration_id: id },
      }),
    [RULES, "/v1/credentials/{credential_id}/audit"],
  );
  const texts = t().credentials;
  const submit = async (event: Event) => {
    event.preventDefault();
    if (await grant.mutateAsync(undefined).catch(() => null)) onClose();
  };
  const error = grant.error?.fields.integration_id;
  return (
    <Dialog
      title={texts.grant}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{t().common.cancel}</Button>
          <Button
            kind="primary"
            type="submit"
            form="grant-access"
            busy={grant.isPending}
            disabled={!id}
          >
            {texts.grant}
          </Button>
        </>
      }
    >
      <form id="grant-access" class="stack" onSubmit={submit}>
        <SelectField
          label={texts.kind}
          value={kind}
          choices={KINDS.map((key) => [key, texts.actors[key]])}
          onChange={(value) => {
            setKind(value as Kind);
            setId("");
            grant.reset();
          }}
        />
        {(kind === "tool" && may("tools:read")) || (kind === "agent" && may("agents:read"))
          ? (
            <RecordField
              key={kind}
              kind={kind}
              label={texts.actors[kind]}
              value={id}
              onChange={setId}
              error={error}
            />
          )
          : <TextField label={texts.id} value={id} onInput={setId} error={error} required />}
        {!error && <Problem error={grant.error} />}
      </form>
    </Dialog>
  );
}
