// What was done with one credential, or with all.
import { useList } from "../../api/queries";
import type { Input, Query, Schemas } from "../../api/types";
import { href } from "../../base";
import { t } from "../../texts";
import { DateFilter, momentOf } from "../../ui/date_filter";
import { Filter } from "../../ui/field";
import { ListTable } from "../../ui/list";
import { Ago, Badge } from "../../ui/small";
import { useFilters } from "../../ui/state";
import { Empty } from "../../ui/states";
import type { Column } from "../../ui/table";

type Entry = Schemas["AuditEntry"];
type Filters = Query<typeof ALL>;

const ALL = "/v1/credentials/audit";
const ONE = "/v1/credentials/{credential_id}/audit";

export function Audit({ id }: { id?: string }) {
  const [{ action, actor, from, to }, setFilters] = useFilters();
  const query = {
    action: action as Filters["action"],
    actor_type: actor as Filters["actor_type"],
    after: momentOf(from),
    before: momentOf(to, true),
  };
  const input = id ? { path: { credential_id: id }, query } : { query };
  // Both answer with the same rows.
  const list = useList((id ? ONE : ALL) as typeof ALL, input as Input<typeof ALL, "get">);
  const texts = t().credentials;
  return (
    <>
      <div class="filters">
        <Filter
          label={texts.action}
          value={action}
          choices={Object.entries(texts.auditActions)}
          onChange={(value) => setFilters({ action: value })}
        />
        <Filter
          label={texts.actor}
          value={actor}
          choices={Object.entries(texts.actors)}
          onChange={(value) => setFilters({ actor: value })}
        />
        <DateFilter
          label={texts.from}
          value={from}
          onChange={(value) => setFilters({ from: value })}
        />
        <DateFilter label={texts.to} value={to} onChange={(value) => setFilters({ to: value })} />
      </div>
      <ListTable
        label={texts.audit}
        list={list}
        columns={columns(!id)}
        keyOf={(row) => row.id}
        onClear={action || actor || from || to
          ? () =>
            setFilters({ action: undefined, actor: undefined, from: undefined, to: undefined })
          : undefined}
        empty={<Empty title={texts.noAudit}>{texts.noAuditAbout}</Empty>}
      />
    </>
  );
}

function columns(isOfAll: boolean): Column<Entry>[] {
  const texts = t().credentials;
  const credential: Column<Entry> = {
    key: "credential",
    label: texts.credential,
    cell: ({ credential_id, credential_name }) =>
      credential_name
        ? <a href={href(`/credentials/${credential_id}`)}>{credential_name}</a>
        : <code class="soft">{credential_id}</code>,
  };
  return [
    {
      key: "at",
      label: texts.when,
      width: "120px",
      cell: ({ created_at }) => <Ago at={created_at} />,
    },
    {
      key: "action",
      label: texts.action,
      cell: ({ action, success }) => (
        <>
          {texts.auditActions[action]} {!success && <Badge tone="bad">{texts.refused}</Badge>}
        </>
      ),
    },
    ...(isOfAll ? [credential] : []),
    {
      key: "actor",
      isSecondary: isOfAll,
      label: texts.actor,
      cell: ({ actor_type, actor_id, actor_name }) => (
        <>
          <span class="soft">{texts.actors[actor_type]}</span> {actor_name ?? actor_id}
        </>
      ),
    },
    {
      key: "for",
      label: texts.usedFor,
      isSecondary: true,
      cell: ({ actor_type, integration, integration_name }) =>
        actor_type === "user" ? integration_name ?? integration : "",
    },
    {
      key: "address",
      label: texts.address,
      width: "128px",
      isSecondary: true,
      cell: ({ ip_address }) => <code class="soft">{ip_address}</code>,
    },
  ];
}
