import { Eye, Trash2 } from "lucide-preact";
import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";

import { api, tagOf } from "../../api/client";
import { keyOf, queries, useChange, useRead } from "../../api/queries";
import { selectTenant, tenant as current } from "../../api/session";
import { href } from "../../base";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { CopyText } from "../../ui/copy";
import { Confirm } from "../../ui/dialog";
import { EditNotes, SaveButton, SaveState } from "../../ui/edit_state";
import { type Editor, useEditor } from "../../ui/editor";
import { NumberField, SelectField, TextField } from "../../ui/field";
import { formatTime } from "../../ui/format";
import { RecordHistory } from "../../ui/history";
import { Card, Facts, Page, Section } from "../../ui/page";
import { Badge } from "../../ui/small";
import { Loaded } from "../../ui/states";
import { notify } from "../../ui/toast";
import { lookAt, planChoices, type Tenant } from "./tenants";

const PATH = "/api/v1/tenants/{tenant_id}";

interface Values {
  name: string;
  plan: Tenant["plan"];
  limits: Tenant["limits"];
}

function toValues({ name, plan, limits }: Tenant): Values {
  return { name, plan, limits };
}

export function TenantScreen({ id }: { id: string }) {
  const tenant = useRead(PATH, { path: { tenant_id: id } });
  const parents = [{ label: t().rail.people, to: "/people" }];
  if (!tenant.data) {
    return (
      <Page title={t().people.tenants.tenant} parents={parents}>
        <Loaded query={tenant}>{() => null}</Loaded>
      </Page>
    );
  }
  return <TenantEditor tenant={tenant.data} />;
}

function TenantEditor({ tenant }: { tenant: Tenant }) {
  const texts = t().people.tenants;
  const [isDeleting, setDeleting] = useState(false);
  const input = { path: { tenant_id: tenant.id } };
  const editor = useEditor<Tenant, Values>({
    name: `tenant ${tenant.id}`,
    record: tenant,
    toValues,
    save: (changes, origin) =>
      api.put(PATH, { ...input, body: toBody(changes) }, { ifMatch: tagOf(origin) }),
    reload: () => api.get(PATH, input),
    onSaved: (next) => {
      queries.setQueryData(keyOf(PATH, input), next);
      void queries.invalidateQueries({ queryKey: ["/api/v1/tenants"] });
    },
  });
  const isCurrent = current.value === tenant.id;
  return (
    <Page
      title={tenant.name}
      parents={[
        { label: t().rail.people, to: "/people" },
        { label: t().people.tabs.tenants, to: "/people?tab=tenants" },
      ]}
      beside={isCurrent && <Badge tone="accent">{texts.lookedAt}</Badge>}
      actions={
        <>
          <SaveState editor={editor} />
          {!isCurrent && <Button icon={Eye} onClick={() => lookAt(tenant)}>{texts.lookAt}</Button>}
          <SaveButton editor={editor} />
        </>
      }
    >
      <EditNotes
        editor={editor}
        toValues={toValues}
        labels={{ name: t().common.name, plan: texts.plan, limits: texts.limits }}
      />
      <Details editor={editor} />
      <LimitFields editor={editor} />
      <Card>
        <Facts
          rows={[
            [t().people.users.id, <CopyText key="id" text={tenant.id} />],
            [t().common.created, formatTime(tenant.created_at)],
          ]}
        />
      </Card>
      <Section title={t().history.title}>
        <RecordHistory
          kind="tenant"
          recordId={tenant.id}
          labels={{ name: t().common.name, plan: texts.plan, limits: texts.limits }}
        />
      </Section>
      <div class="actions">
        <Button icon={Trash2} onClick={() => setDeleting(true)}>{texts.delete}</Button>
      </div>
      {isDeleting && <DeleteTenant tenant={tenant} onClose={() => setDeleting(false)} />}
    </Page>
  );
}

// Limits belong to the enterprise plan: with another one, the server drops them.
function toBody(changes: Partial<Values>): Partial<Values> {
  if (!changes.plan || changes.plan === "enterprise") return changes;
  const { limits: _, ...others } = changes;
  return others;
}

function Details({ editor }: { editor: Editor<Tenant, Values> }) {
  const texts = t().people.tenants;
  const { values, set, errors } = editor;
  return (
    <Section title={texts.details}>
      <Card class="form-grid">
        <TextField
          label={t().common.name}
          value={values.name}
          onInput={(name) => set({ name })}
          error={errors.name}
          maxLength={100}
        />
        <SelectField
          label={texts.plan}
          value={values.plan}
          choices={planChoices()}
          onChange={(plan) => set({ plan: plan as Tenant["plan"] })}
          error={errors.plan}
        />
      </Card>
    </Section>
  );
}

type LimitName = keyof ReturnType<typeof t>["people"]["tenants"]["limitNames"];

function LimitFields({ editor }: { editor: Editor<Tenant, Values> }) {
  const texts = t().people.tenants;
  const { values, set, errors } = editor;
  if (values.plan !== "enterprise") {
    return <Section title={texts.limits} about={texts.limitsEnterprise}>{null}</Section>;
  }
  const change = (name: LimitName, value: number | null) => {
    const { [name]: _, ...others } = values.limits;
    set({ limits: value === null ? others : { ...others, [name]: value } });
  };
  return (
    <Section title={texts.limits} about={texts.limitsAbout}>
      <Card class="form-grid">
        {(Object.entries(texts.limitNames) as [LimitName, string][]).map(([name, label]) => (
          <NumberField
            key={name}
            label={label}
            value={values.limits[name] ?? null}
            onInput={(value) => change(name, value)}
            error={errors[`limits.${name}`]}
            placeholder={texts.ofPlan}
            min={1}
            step={1}
          />
        ))}
        {errors.limits && <p class="problem">{errors.limits}</p>}
      </Card>
    </Section>
  );
}

function DeleteTenant({ tenant, onClose }: { tenant: Tenant; onClose: () => void }) {
  const { route } = useLocation();
  const texts = t().people.tenants;
  const remove = useChange(
    () => api.delete(PATH, { path: { tenant_id: tenant.id } }),
    ["/api/v1/tenants"],
  );
  const confirm = async () => {
    try {
      await remove.mutateAsync(undefined);
    } catch {
      return;
    }
    if (current.peek() === tenant.id) selectTenant(null);
    notify(texts.deleted(tenant.name));
    route(href("/people", { tab: "tenants" }));
  };
  return (
    <Confirm
      title={texts.deleteTitle(tenant.name)}
      action={texts.delete}
      isBusy={remove.isPending}
      error={remove.error}
      onConfirm={confirm}
      onClose={onClose}
    >
      <p>{texts.deleteAbout}</p>
    </Confirm>
  );
}
