// What administrators do with an account.
import { Ellipsis, RotateCcw, ShieldOff, Trash2, UserCheck, UserX } from "lucide-preact";
import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";

import { api, tagOf } from "../../api/client";
import { useChange } from "../../api/queries";
import { href } from "../../base";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Confirm, Dialog } from "../../ui/dialog";
import { SelectField } from "../../ui/field";
import { Menu, type MenuItem } from "../../ui/menu";
import { Problem } from "../../ui/states";
import { notify } from "../../ui/toast";
import { givenRoles, nameOf, type Role, type User } from "./roles";

const READS = ["/users", "/users/{user_id}"] as const;
type Action = "role" | "deactivate" | "mfa" | "delete";

export function UserActions({ user }: { user: User }) {
  const [open, setOpen] = useState<Action | null>(null);
  const texts = t().people.users;
  const close = () => setOpen(null);
  const reactivate = useChange(
    () => api.post("/users/{user_id}/reactivate", { path: { user_id: user.id } }),
    [...READS],
  );
  const items: MenuItem[] = [
    ...(user.mfa_enabled
      ? [{ label: texts.resetMfa, icon: ShieldOff, onSelect: () => setOpen("mfa") }]
      : []),
    user.status === "active"
      ? { label: texts.deactivate, icon: UserX, onSelect: () => setOpen("deactivate") }
      : {
        label: texts.reactivate,
        icon: UserCheck,
        onSelect: () =>
          reactivate.mutate(undefined, {
            onSuccess: () => notify(texts.reactivated(nameOf(user))),
          }),
      },
    { label: texts.delete, icon: Trash2, isDanger: true, onSelect: () => setOpen("delete") },
  ];
  return (
    <>
      <Problem error={reactivate.error} />
      <Button icon={RotateCcw} onClick={() => setOpen("role")}>{texts.changeRole}</Button>
      <Menu label={t().common.actions} icon={Ellipsis} items={items} />
      {open === "role" && <ChangeRole user={user} onClose={close} />}
      {open === "deactivate" && <Deactivate user={user} onClose={close} />}
      {open === "mfa" && <ResetMfa user={user} onClose={close} />}
      {open === "delete" && <DeleteUser user={user} onClose={close} />}
    </>
  );
}

interface Props {
  user: User;
  onClose: () => void;
}

function ChangeRole({ user, onClose }: Props) {
  const [role, setRole] = useState<Role>(user.role);
  const texts = t().people;
  const change = useChange(
    () => {
      const input = { path: { user_id: user.id }, body: { role } };
      return api.put("/users/{user_id}/role", input, { ifMatch: tagOf(user) });
    },
    [...READS],
  );
  const submit = async (event: Event) => {
    event.preventDefault();
    if (role !== user.role) {
      if (!await change.mutateAsync(undefined).catch(() => null)) return;
      notify(texts.users.roleChanged(nameOf(user), t().roles[role]));
    }
    onClose();
  };
  return (
    <Dialog
      title={texts.users.changeRoleTitle(nameOf(user))}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{t().common.cancel}</Button>
          <Button kind="primary" type="submit" form="role" busy={change.isPending}>
            {texts.users.changeRole}
          </Button>
        </>
      }
    >
      <form id="role" class="stack" onSubmit={submit}>
        <SelectField
          label={t().common.role}
          hint={texts.users.changeRoleAbout}
          value={role}
          choices={givenRoles()}
          onChange={(value) => setRole(value as Role)}
        />
        <Problem error={change.error} />
      </form>
    </Dialog>
  );
}

function Deactivate({ user, onClose }: Props) {
  const texts = t().people.users;
  return (
    <Act
      title={texts.deactivateTitle(nameOf(user))}
      about={texts.deactivateAbout}
      action={texts.deactivate}
      done={texts.deactivated(nameOf(user))}
      act={() => api.post("/users/{user_id}/deactivate", { path: { user_id: user.id } })}
      onClose={onClose}
    />
  );
}

function ResetMfa({ user, onClose }: Props) {
  const texts = t().people.users;
  return (
    <Act
      title={texts.resetMfaTitle(nameOf(user))}
      about={texts.resetMfaAbout}
      action={texts.resetMfa}
      done={texts.resetMfaDone(nameOf(user))}
      act={() => api.post("/api/v1/users/{user_id}/mfa/reset", { path: { user_id: user.id } })}
      onClose={onClose}
    />
  );
}

function DeleteUser({ user, onClose }: Props) {
  const { route } = useLocation();
  const texts = t().people.users;
  return (
    <Act
      title={texts.deleteTitle(nameOf(user))}
      about={texts.deleteAbout}
      action={texts.delete}
      done={texts.deleted(nameOf(user))}
      act={() => api.delete("/users/{user_id}", { path: { user_id: user.id } })}
      onClose={onClose}
      onDone={() => route(href("/people"))}
    />
  );
}

function Act(
  { title, about, action, done, act, onClose, onDone }: {
    title: string;
    about: string;
    action: string;
    done: string;
    act: () => Promise<unknown>;
    onClose: () => void;
    onDone?: () => void;
  },
) {
  // The page of a deleted user is left before its record is read again.
  const change = useChange(act, onDone ? ["/users"] : [...READS]);
  const confirm = async () => {
    try {
      await change.mutateAsync(undefined);
    } catch {
      return;
    }
    notify(done);
    onClose();
    onDone?.();
  };
  return (
    <Confirm
      title={title}
      action={action}
      isBusy={change.isPending}
      error={change.error}
      onConfirm={confirm}
      onClose={onClose}
    >
      <p>{about}</p>
    </Confirm>
  );
}
