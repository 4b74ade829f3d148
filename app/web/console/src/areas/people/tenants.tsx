import { Building2, Eye, Plus } from "lucide-preact";
import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useChange, useList } from "../../api/queries";
import { selectTenant, tenant as current } from "../../api/session";
import type { Query, Schemas } from "../../api/types";
import { href } from "../../base";
import { t } from "../../texts";
import { Button, IconButton } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Filter, SearchField, SelectField, TextField } from "../../ui/field";
import { ListTable } from "../../ui/list";
import { Ago, Badge } from "../../ui/small";
import { Empty, Problem } from "../../ui/states";
import { useDelayed, useFilters } from "../../ui/state";
import type { Column } from "../../ui/table";
import { notify } from "../../ui/toast";

export type Tenant = Schemas["TenantView"];
type Plan = Tenant["plan"];

export function lookAt({ id, name }: Tenant): void {
  selectTenant(id);
  notify(t().people.tenants.switched(name), () => selectTenant(null));
}

export function TenantList() {
  const [filters, setFilters] = useFilters();
  const { search, plan, sort } = useDelayed(filters);
  const list = useList("/api/v1/tenants", {
    query: { search, plan: plan as Query<"/api/v1/tenants">["plan"], sort },
  });
  const texts = t().people.tenants;
  const create = (
    <Button kind="primary" icon={Plus} onClick={() => setFilters({ new: "tenant" })}>
      {texts.newTenant}
    </Button>
  );
  return (
    <>
      <div class="bar">
        <TenantFilters />
        {create}
      </div>
      <ListTable
        label={t().people.tabs.tenants}
        list={list}
        columns={listColumns()}
        keyOf={({ id }) => id}
        linkOf={({ id }) => `/people/tenants/${id}`}
        actionsOf={(row) =>
          row.id !== current.value && (
            <IconButton
              icon={Eye}
              label={`${texts.lookAt}: ${row.name}`}
              onClick={() => lookAt(row)}
            />
          )}
        onClear={filters.search || filters.plan
          ? () => setFilters({ search: undefined, plan: undefined })
          : undefined}
        empty={
          <Empty icon={Building2} title={texts.emptyTitle} action={create}>
            {texts.emptyAbout}
          </Empty>
        }
      />
      {filters.new && <NewTenant onClose={() => setFilters({ new: undefined })} />}
    </>
  );
}

function TenantFilters() {
  const [filters, setFilters] = useFilters();
  const texts = t().people.tenants;
  return (
    <div class="filters">
      <SearchField
        value={filters.search ?? ""}
        onInput={(value) => setFilters({ search: value })}
      />
      <Filter
        label={texts.plan}
        value={filters.plan}
        choices={Object.entries(texts.plans)}
        onChange={(value) => setFilters({ plan: value })}
      />
      <Filter
        label={t().common.order}
        value={filters.sort}
        all={t().common.newest}
        choices={[["name", t().common.name], ["plan", texts.plan]]}
        onChange={(value) => setFilters({ sort: value })}
      />
    </div>
  );
}

function listColumns(): Column<Tenant>[] {
  const texts = t().people.tenants;
  return [
    {
      key: "name",
      label: t().common.name,
      cell: ({ id, name }) => (
        <>
          {name} {id === current.value && <Badge tone="accent">{texts.lookedAt}</Badge>}
        </>
      ),
    },
    { key: "plan", label: texts.plan, width: "120px", cell: ({ plan }) => texts.plans[plan] },
    {
      key: "limits",
      label: texts.limits,
      width: "160px",
      isSecondary: true,
      cell: ({ limits }) => {
        const number = Object.keys(limits).length;
        return <span class="soft">{number ? texts.ownLimits(number) : texts.ofPlan}</span>;
      },
    },
    {
      key: "created",
      label: t().common.created,
      width: "144px",
      isSecondary: true,
      cell: ({ created_at }) => <Ago at={created_at} />,
    },
  ];
}

export function planChoices(): [Plan, string][] {
  return Object.entries(t().people.tenants.plans) as [Plan, string][];
}

function NewTenant({ onClose }: { onClose: () => void }) {
  const { route } = useLocation();
  const [name, setName] = useState("");
  const [plan, setPlan] = useState<Plan>("free");
  const texts = t().people.tenants;
  const create = useChange(
    () => api.post("/api/v1/tenants", { body: { name, plan } }),
    ["/api/v1/tenants"],
  );
  const errors = create.error?.fields ?? {};
  const submit = async (event: Event) => {
    event.preventDefault();
    const made = await create.mutateAsync(undefined).catch(() => null);
    if (made) route(href(`/people/tenants/${made.id}`));
  };
  return (
    <Dialog
      title={texts.newTenant}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{t().common.cancel}</Button>
          <Button kind="primary" type="submit" form="new-tenant" busy={create.isPending}>
            {texts.create}
          </Button>
        </>
      }
    >
      <form id="new-tenant" class="stack" onSubmit={submit}>
        <TextField
          label={t().common.name}
          value={name}
          onInput={setName}
          error={errors.name}
          maxLength={100}
          autoFocus
          required
        />
        <SelectField
          label={texts.plan}
          value={plan}
          choices={planChoices()}
          onChange={(value) => setPlan(value as Plan)}
          error={errors.plan}
        />
        {Object.keys(errors).length === 0 && <Problem error={create.error} />}
      </form>
    </Dialog>
  );
}
