import { Plus, Trash2, Waypoints } from "lucide-preact";
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useChange, useList } from "../../api/queries";
import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import { Button, IconButton } from "../../ui/button";
import { Confirm } from "../../ui/dialog";
import { ListTable } from "../../ui/list";
import { Ago, Badge } from "../../ui/small";
import { useFilters } from "../../ui/state";
import { Empty } from "../../ui/states";
import type { Column } from "../../ui/table";
import { notify } from "../../ui/toast";
import { NewServiceKey } from "./new_service_key";

export const SERVICE_KEYS = "/api/v1/service-keys";
type ServiceKey = Schemas["ServiceKeyView"];

export function ServiceKeys() {
  const [filters, setFilters] = useFilters();
  const [revoking, setRevoking] = useState<ServiceKey | null>(null);
  const list = useList(SERVICE_KEYS, { query: {} });
  const texts = t().settings.service;
  const add = (
    <Button kind="primary" icon={Plus} onClick={() => setFilters({ new: "service" })}>
      {texts.add}
    </Button>
  );
  return (
    <>
      <div class="bar">
        <p class="about grow">{texts.about}</p>
        {Boolean(list.rows?.length) && add}
      </div>
      <ListTable
        label={t().settings.tabs.service}
        list={list}
        columns={columns()}
        keyOf={({ id }) => id}
        actionsOf={(key) => (
          <IconButton
            icon={Trash2}
            label={texts.revokeOf(key.name)}
            onClick={() => setRevoking(key)}
          />
        )}
        empty={
          <Empty icon={Waypoints} title={texts.emptyTitle} action={add}>{texts.emptyAbout}</Empty>
        }
      />
      {revoking && <Revoke serviceKey={revoking} onClose={() => setRevoking(null)} />}
      {filters.new === "service" && (
        <NewServiceKey
          onClose={() => setFilters({ new: undefined })}
        />
      )}
    </>
  );
}

function columns(): Column<ServiceKey>[] {
  const texts = t().settings.service;
  return [
    { key: "name", label: t().common.name, cell: ({ name }) => name },
    {
      key: "key",
      label: texts.key,
      width: "136px",
      isSecondary: true,
      cell: ({ key_prefix }) => <code>{key_prefix}…</code>,
    },
    {
      key: "role",
      label: t().common.role,
      width: "136px",
      cell: ({ role }) => t().roles[role],
    },
    {
      key: "agents",
      label: t().rail.agents,
      width: "112px",
      isSecondary: true,
      cell: ({ agent_ids }) => agent_ids ? texts.agents(agent_ids.length) : t().common.all,
    },
    {
      key: "used",
      label: texts.lastUsed,
      width: "136px",
      isSecondary: true,
      cell: ({ last_used_at }) =>
        last_used_at ? <Ago at={last_used_at} /> : <span class="soft">{texts.never}</span>,
    },
    {
      key: "expires",
      label: texts.expires,
      width: "144px",
      isSecondary: true,
      cell: ({ expires_at }) => <Expiry at={expires_at} />,
    },
  ];
}

function Expiry({ at }: { at: string | null }) {
  const texts = t().settings.service;
  if (!at) return <span class="soft">{texts.never}</span>;
  return Date.parse(at) < Date.now() ? <Badge tone="bad">{texts.expired}</Badge> : <Ago at={at} />;
}

function Revoke({ serviceKey, onClose }: { serviceKey: ServiceKey; onClose: () => void }) {
  const texts = t().settings.service;
  const revoke = useChange(
    () => api.delete("/api/v1/service-keys/{key_id}", { path: { key_id: serviceKey.id } }),
    [SERVICE_KEYS],
  );
  return (
    <Confirm
      title={texts.revokeTitle(serviceKey.name)}
      action={texts.revoke}
      isBusy={revoke.isPending}
      error={revoke.error}
      onClose={onClose}
      onConfirm={() =>
        revoke.mutate(undefined, {
          onSuccess: () => {
            onClose();
            notify(texts.revoked(serviceKey.name));
          },
        })}
    >
      <p>{texts.revokeAbout}</p>
    </Confirm>
  );
}
