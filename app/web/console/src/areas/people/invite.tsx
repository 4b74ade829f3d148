import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useChange } from "../../api/queries";
import { isSuperAdmin, session, tenant } from "../../api/session";
import type { Schemas } from "../../api/types";
import { BASE } from "../../base";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Snippet } from "../../ui/content";
import { Dialog } from "../../ui/dialog";
import { SelectField, TextField } from "../../ui/field";
import { RecordField } from "../../ui/record_picker";
import { Problem } from "../../ui/states";
import { givenRoles, type Role } from "./roles";

type Invitation = Schemas["InvitationView"];

export function Invite({ onClose }: { onClose: () => void }) {
  const [invitation, setInvitation] = useState<Invitation | null>(null);
  return invitation
    ? <Sent invitation={invitation} onClose={onClose} />
    : <InviteForm onSent={setInvitation} onClose={onClose} />;
}

function InviteForm(
  { onSent, onClose }: { onSent: (invitation: Invitation) => void; onClose: () => void },
) {
  const texts = t().people;
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role>("agent_user");
  const [tenantId, setTenant] = useState(tenant.value ?? session.value?.user.tenant_id ?? "");
  const invite = useChange(
    () => {
      const place = isSuperAdmin() ? { tenant_id: tenantId } : {};
      return api.post("/users/invite", { body: { email, role, ...place } });
    },
    ["/users/invitations"],
  );
  const errors = invite.error?.fields ?? {};
  const submit = async (event: Event) => {
    event.preventDefault();
    const sent = await invite.mutateAsync(undefined).catch(() => null);
    if (sent) onSent(sent);
  };
  return (
    <Dialog
      title={texts.invitations.invite}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{t().common.cancel}</Button>
          <Button kind="primary" type="submit" form="invite" busy={invite.isPending}>
            {texts.invitations.send}
          </Button>
        </>
      }
    >
      <form id="invite" class="stack" onSubmit={submit}>
        <TextField
          label={texts.email}
          type="email"
          value={email}
          onInput={setEmail}
          error={errors.email}
          maxLength={254}
          autocomplete="off"
          autoFocus
          required
        />
        <SelectField
          label={t().common.role}
          hint={texts.invitations.roleHint}
          value={role}
          choices={givenRoles()}
          onChange={(value) => setRole(value as Role)}
          error={errors.role}
        />
        {isSuperAdmin() && !tenant.value && (
          <TenantField value={tenantId} onChange={setTenant} error={errors.tenant_id} />
        )}
        {Object.keys(errors).length === 0 && <Problem error={invite.error} />}
      </form>
    </Dialog>
  );
}

function TenantField(
  { value, onChange, error }: {
    value: string;
    onChange: (id: string) => void;
    error: string | undefined;
  },
) {
  return (
    <RecordField
      kind="tenant"
      label={t().people.users.tenant}
      hint={t().people.invitations.tenantHint}
      value={value}
      onChange={onChange}
      error={error}
    />
  );
}

// The link is shown once: the server keeps only a hash of its token.
function Sent({ invitation, onClose }: { invitation: Invitation; onClose: () => void }) {
  const texts = t().people.invitations;
  const link = `${location.origin}${BASE}/register?token=${invitation.invitation_token}`;
  return (
    <Dialog
      title={texts.sentTitle}
      onClose={onClose}
      actions={<Button kind="primary" onClick={onClose}>{texts.done}</Button>}
    >
      <p dir="auto">{texts.sentAbout(invitation.email)}</p>
      <Snippet text={link} label={texts.link} />
    </Dialog>
  );
}
