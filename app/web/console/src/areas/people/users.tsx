import { UserPlus, Users } from "lucide-preact";

import { useList, useRead } from "../../api/queries";
import { isSuperAdmin, may, session, tenant } from "../../api/session";
import type { Query } from "../../api/types";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Filter, SearchField } from "../../ui/field";
import { ListTable } from "../../ui/list";
import { RecordName } from "../../ui/record_picker";
import { Ago, Badge } from "../../ui/small";
import { Empty } from "../../ui/states";
import { useDelayed, useFilters } from "../../ui/state";
import type { Column } from "../../ui/table";
import { Invite } from "./invite";
import { nameOf, roleChoices, type User } from "./roles";

type Filters = Query<"/users">;

export function UserStatus({ user }: { user: User }) {
  const texts = t().people.users;
  return (
    <Badge tone={user.status === "active" ? "good" : "warn"}>{texts.statuses[user.status]}</Badge>
  );
}

// The names of the first tenants, for those who see several.
export function useTenantNames(): Map<string, string> {
  const isNeeded = isSuperAdmin() && !tenant.value;
  const tenants = useRead("/api/v1/tenants", { query: { per_page: 100 } }, {
    enabled: isNeeded,
    staleTime: 60_000,
  });
  return new Map(isNeeded ? tenants.data?.data.map(({ id, name }) => [id, name]) : []);
}

export function InviteButton({ onClick }: { onClick: () => void }) {
  if (!may("admin:users")) return null;
  return (
    <Button kind="primary" icon={UserPlus} onClick={onClick}>
      {t().people.invitations.invite}
    </Button>
  );
}

export function UserList() {
  const [filters, setFilters] = useFilters();
  const { search, role, status, sort } = useDelayed(filters);
  const query: Filters = {
    search,
    role: role as Filters["role"],
    status: status as Filters["status"],
    sort,
  };
  const list = useList("/users", { query });
  const names = useTenantNames();
  const texts = t().people;
  const isFiltered = Boolean(filters.search || filters.role || filters.status);
  const invite = <InviteButton onClick={() => setFilters({ new: "1" })} />;
  return (
    <>
      <div class="bar">
        <UserFilters />
        {invite}
      </div>
      <ListTable
        label={texts.tabs.users}
        list={list}
        columns={listColumns(names)}
        keyOf={({ id }) => id}
        linkOf={({ id }) => `/people/${id}`}
        onClear={isFiltered
          ? () => setFilters({ search: undefined, role: undefined, status: undefined })
          : undefined}
        empty={
          <Empty icon={Users} title={texts.users.emptyTitle} action={invite}>
            {texts.users.emptyAbout}
          </Empty>
        }
      />
      {filters.new && <Invite onClose={() => setFilters({ new: undefined })} />}
    </>
  );
}

function UserFilters() {
  const [filters, setFilters] = useFilters();
  const texts = t().people;
  return (
    <div class="filters">
      <SearchField
        value={filters.search ?? ""}
        onInput={(value) => setFilters({ search: value })}
      />
      <Filter
        label={t().common.role}
        value={filters.role}
        choices={roleChoices()}
        onChange={(value) => setFilters({ role: value })}
      />
      <Filter
        label={t().common.status}
        value={filters.status}
        choices={Object.entries(texts.users.statuses)}
        onChange={(value) => setFilters({ status: value })}
      />
      <Filter
        label={t().common.order}
        value={filters.sort}
        all={t().common.newest}
        choices={[["email", texts.email], ["-last_login_at", texts.users.lastSignIn]]}
        onChange={(value) => setFilters({ sort: value })}
      />
    </div>
  );
}

function listColumns(names: Map<string, string>): Column<User>[] {
  const texts = t().people;
  const tenantColumn: Column<User> = {
    key: "tenant",
    label: texts.users.tenant,
    isSecondary: true,
    cell: ({ tenant_id }) => names.get(tenant_id) ?? <RecordName kind="tenant" id={tenant_id} />,
  };
  return [
    { key: "name", label: t().common.name, cell: (user) => <UserName user={user} /> },
    {
      key: "email",
      label: texts.email,
      isSecondary: true,
      cell: ({ email }) => <span class="soft">{email}</span>,
    },
    ...(names.size ? [tenantColumn] : []),
    {
      key: "role",
      label: t().common.role,
      width: "160px",
      isSecondary: true,
      cell: ({ role }) => t().roles[role],
    },
    {
      key: "mfa",
      label: texts.users.mfa,
      width: "96px",
      isSecondary: true,
      cell: ({ mfa_enabled }) => mfa_enabled ? texts.users.mfaOn : <span class="soft">–</span>,
    },
    {
      key: "status",
      label: t().common.status,
      width: "104px",
      cell: (user) => <UserStatus user={user} />,
    },
    {
      key: "seen",
      label: texts.users.lastSignIn,
      width: "128px",
      isSecondary: true,
      cell: ({ last_login_at }) => <Ago at={last_login_at} />,
    },
  ];
}

function UserName({ user }: { user: User }) {
  const isMe = user.id === session.value?.user.id;
  return (
    <>
      {nameOf(user)}
      {isMe && <span class="soft">{` (${t().people.users.you})`}</span>}
    </>
  );
}
