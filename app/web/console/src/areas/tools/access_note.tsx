// A tool may use a credential only where an access rule of the credential allows it.
import { api } from "../../api/client";
import { useChange, useRead } from "../../api/queries";
import { may } from "../../api/session";
import { href } from "../../base";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Problem } from "../../ui/states";

const RULES = "/v1/credentials/{credential_id}/access";

export function AccessNote(
  { toolId, credentialId = "" }: {
    toolId: string;
    credentialId: string | undefined;
  },
) {
  const rules = useRead(RULES, { path: { credential_id: credentialId } }, {
    enabled: Boolean(credentialId) && may("credentials:read"),
  });
  const grant = useChange(
    () =>
      api.post(RULES, {
        path: { credential_id: credentialId },
        body: { integration_type: "tool", integration_id: toolId },
      }),
    [RULES],
  );
  const texts = t().tools;
  if (!credentialId) return null;
  const link = <a href={href(`/credentials/${credentialId}`)}>{texts.openCredential}</a>;
  if (rules.error) {
    return (
      <div class="note bad">
        <span>{texts.credentialGone}</span>
      </div>
    );
  }
  if (!rules.data) return null;
  if (rules.data.data.some(({ integration_id }) => integration_id === toolId)) {
    return <p class="hint">{texts.hasAccess} {link}</p>;
  }
  return (
    <div class="note warn">
      <span>{texts.noAccess}</span>
      {may("credentials:write") && (
        <Button
          busy={grant.isPending}
          onClick={() => grant.mutate(undefined)}
        >
          {texts.grantAccess}
        </Button>
      )}
      {link}
      <Problem error={grant.error} />
    </div>
  );
}
