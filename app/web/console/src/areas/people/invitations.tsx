import { MailOpen, Trash2 } from "lucide-preact";
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useChange, useList } from "../../api/queries";
import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import { IconButton } from "../../ui/button";
import { Confirm } from "../../ui/dialog";
import { Filter } from "../../ui/field";
import { ListTable } from "../../ui/list";
import { Ago, Badge, type Tone } from "../../ui/small";
import { Empty } from "../../ui/states";
import { useFilters } from "../../ui/state";
import type { Column } from "../../ui/table";
import { notify } from "../../ui/toast";
import { Invite } from "./invite";
import { isWithinReach } from "./roles";
import { InviteButton } from "./users";

type Invitation = Schemas["InvitationEntry"];

const TONES: Record<Invitation["status"], Tone> = {
  pending: "accent",
  used: "good",
  expired: "neutral",
};

export function InvitationList() {
  const [filters, setFilters] = useFilters();
  const [revoked, setRevoked] = useState<Invitation | null>(null);
  const list = useList("/users/invitations", { query: { sort: filters.sort } });
  const texts = t().people.invitations;
  const invite = <InviteButton onClick={() => setFilters({ new: "1" })} />;
  return (
    <>
      <div class="bar">
        <div class="filters">
          <Filter
            label={t().common.order}
            value={filters.sort}
            all={t().common.newest}
            choices={[["email", t().people.email], ["expires_at", texts.expires]]}
            onChange={(value) => setFilters({ sort: value })}
          />
        </div>
        {invite}
      </div>
      <ListTable
        label={t().people.tabs.invitations}
        list={list}
        columns={listColumns()}
        keyOf={({ id }) => id}
        actionsOf={(row) =>
          row.status === "pending" && isWithinReach(row.role) && (
            <IconButton
              icon={Trash2}
              label={texts.revokeOf(row.email)}
              onClick={() => setRevoked(row)}
            />
          )}
        empty={
          <Empty icon={MailOpen} title={texts.emptyTitle} action={invite}>{texts.emptyAbout}</Empty>
        }
      />
      {revoked && <Revoke invitation={revoked} onClose={() => setRevoked(null)} />}
      {filters.new && <Invite onClose={() => setFilters({ new: undefined })} />}
    </>
  );
}

function Revoke({ invitation, onClose }: { invitation: Invitation; onClose: () => void }) {
  const texts = t().people.invitations;
  const revoke = useChange(
    () =>
      api.post("/users/invitations/{invitation_id}/revoke", {
        path: { invitation_id: invitation.id },
      }),
    ["/users/invitations"],
  );
  const confirm = async () => {
    const done = await revoke.mutateAsync(undefined).catch(() => null);
    if (!done) return;
    notify(texts.revoked);
    onClose();
  };
  return (
    <Confirm
      title={texts.revokeTitle(invitation.email)}
      action={texts.revoke}
      isBusy={revoke.isPending}
      error={revoke.error}
      onConfirm={confirm}
      onClose={onClose}
    >
      <p>{texts.revokeAbout}</p>
    </Confirm>
  );
}

function listColumns(): Column<Invitation>[] {
  const texts = t().people;
  return [
    { key: "email", label: texts.email, cell: ({ email }) => email },
    {
      key: "role",
      label: t().common.role,
      width: "160px",
      isSecondary: true,
      cell: ({ role }) => t().roles[role],
    },
    {
      key: "status",
      label: t().common.status,
      width: "112px",
      cell: ({ status }) => <Badge tone={TONES[status]}>{texts.invitations.statuses[status]}
      </Badge>,
    },
    {
      key: "created",
      label: t().common.created,
      width: "136px",
      isSecondary: true,
      cell: ({ created_at }) => <Ago at={created_at} />,
    },
    {
      key: "expires",
      label: texts.invitations.expires,
      width: "136px",
      isSecondary: true,
      cell: ({ expires_at }) => <Ago at={expires_at} />,
    },
  ];
}
