import { KeyRound, Plus } from "lucide-preact";

import { useList } from "../../api/queries";
import { may } from "../../api/session";
import type { Query, Schemas } from "../../api/types";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Filter, SearchField } from "../../ui/field";
import { ListTable } from "../../ui/list";
import { Page } from "../../ui/page";
import { Ago, Badge, Tabs } from "../../ui/small";
import { useDelayed, useFilters } from "../../ui/state";
import { Empty } from "../../ui/states";
import type { Column } from "../../ui/table";
import { Audit } from "./audit";
import { NewCredential } from "./new_credential";
import { type CredentialType, stateOf } from "./types";

type Row = Schemas["CredentialSummary"];

export function CredentialList() {
  const [filters, setFilters] = useFilters();
  const texts = t().credentials;
  const create = may("credentials:write") && (
    <Button
      kind="primary"
      icon={Plus}
      onClick={() => setFilters({ new: "1" })}
    >
      {texts.newCredential}
    </Button>
  );
  return (
    <Page title={t().rail.credentials} actions={create}>
      <Tabs
        label={t().rail.credentials}
        tabs={[["vault", t().rail.credentials], ["audit", texts.audit]]}
      >
        {(tab) => (tab === "audit" ? <Audit /> : <Vault create={create} />)}
      </Tabs>
      {filters.new && <NewCredential onClose={() => setFilters({ new: undefined })} />}
    </Page>
  );
}

function Vault({ create }: { create: preact.ComponentChildren }) {
  const [filters, setFilters] = useFilters();
  const { search, type, sort } = useDelayed(filters);
  const list = useList("/v1/credentials", {
    query: { search, type: type as Query<"/v1/credentials">["type"], sort },
  });
  const texts = t().credentials;
  return (
    <>
      <div class="filters">
        <SearchField
          value={filters.search ?? ""}
          onInput={(value) => setFilters({ search: value })}
        />
        <Filter
          label={texts.type}
          value={filters.type}
          choices={Object.entries(texts.types)}
          onChange={(value) => setFilters({ type: value })}
        />
        <Filter
          label={t().common.order}
          value={filters.sort}
          all={t().common.newest}
          choices={[["name", t().common.name], ["-last_used_at", texts.lastUsed]]}
          onChange={(value) => setFilters({ sort: value })}
        />
      </div>
      <ListTable
        label={t().rail.credentials}
        list={list}
        columns={columns()}
        keyOf={({ id }) => id}
        linkOf={({ id }) => `/credentials/${id}`}
        onClear={filters.search || filters.type
          ? () => setFilters({ search: undefined, type: undefined })
          : undefined}
        empty={
          <Empty icon={KeyRound} title={texts.emptyTitle} action={create}>
            {texts.emptyAbout}
          </Empty>
        }
      />
    </>
  );
}

export function CredentialState({ credential }: { credential: Row }) {
  const { tone, text } = stateOf(credential);
  return <Badge tone={tone}>{text}</Badge>;
}

export function typeName(type: CredentialType): string {
  return t().credentials.types[type];
}

function columns(): Column<Row>[] {
  const texts = t().credentials;
  return [
    { key: "name", label: t().common.name, cell: ({ name }) => name },
    {
      key: "type",
      label: texts.type,
      width: "184px",
      isSecondary: true,
      cell: ({ type }) => typeName(type),
    },
    {
      key: "state",
      label: t().common.status,
      width: "120px",
      cell: (row) => <CredentialState credential={row} />,
    },
    {
      key: "used",
      label: texts.lastUsed,
      width: "152px",
      isSecondary: true,
      cell: ({ last_used_at }) => <Ago at={last_used_at} />,
    },
    {
      key: "expires",
      label: texts.expires,
      width: "152px",
      isSecondary: true,
      cell: ({ token_expires_at }) => <Ago at={token_expires_at} />,
    },
  ];
}
