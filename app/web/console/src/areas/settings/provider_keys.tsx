import { CircleCheck, CircleX, Ellipsis, KeyRound, Plus } from "lucide-preact";
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useChange, useRead } from "../../api/queries";
import { may } from "../../api/session";
import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Confirm } from "../../ui/dialog";
import { formatDuration } from "../../ui/format";
import { Menu } from "../../ui/menu";
import { Ago, Badge } from "../../ui/small";
import { useFilters } from "../../ui/state";
import { Empty, Loaded, Problem } from "../../ui/states";
import { type Column, Table } from "../../ui/table";
import { notify } from "../../ui/toast";
import { NewProviderKey } from "./new_provider_key";
import { titleOf } from "./providers";

export const KEYS = "/api/v1/api-keys";
export type ProviderKey = Schemas["ProviderKeyView"];
type Result = Schemas["KeyTest"];

export function ProviderKeys() {
  const [filters, setFilters] = useFilters();
  const query = useRead(KEYS, {});
  const texts = t().settings.keys;
  const add = may("models:write") && (
    <Button
      kind="primary"
      icon={Plus}
      onClick={() => setFilters({ new: "key" })}
    >
      {texts.add}
    </Button>
  );
  return (
    <>
      <div class="bar">
        <p class="about grow">{texts.about}</p>
        {Boolean(query.data?.data.length) && add}
      </div>
      <Loaded query={query}>
        {({ data }) =>
          data.length
            ? <KeyTable keys={data} />
            : (
              <Empty icon={KeyRound} title={texts.emptyTitle} action={add}>
                {texts.emptyAbout}
              </Empty>
            )}
      </Loaded>
      {filters.new === "key" && may("models:write") && (
        <NewProviderKey onClose={() => setFilters({ new: undefined })} />
      )}
    </>
  );
}

function KeyTable({ keys }: { keys: ProviderKey[] }) {
  const [results, setResults] = useState<Record<string, Result | "busy" | Error>>({});
  const [deleting, setDeleting] = useState<ProviderKey | null>(null);
  const test = async ({ id }: ProviderKey) => {
    setResults((before) => ({ ...before, [id]: "busy" }));
    const result = await api.post("/api/v1/api-keys/{key_id}/test", { path: { key_id: id } })
      .catch((error: Error) => error);
    setResults((before) => ({ ...before, [id]: result }));
  };
  return (
    <>
      <Table<ProviderKey>
        label={t().settings.tabs.keys}
        rows={keys}
        keyOf={({ id }) => id}
        columns={columns()}
        {...(may("models:write")
          ? {
            actionsOf: (key) => <KeyMenu providerKey={key} onTest={test} onDelete={setDeleting} />,
          }
          : {})}
      />
      <div class="stack" role="status">
        {keys.map((key) => {
          const result = results[key.id];
          return result && <TestResult key={key.id} name={key.name} result={result} />;
        })}
      </div>
      {deleting && <DeleteKey providerKey={deleting} onClose={() => setDeleting(null)} />}
    </>
  );
}

function columns(): Column<ProviderKey>[] {
  const texts = t().settings.keys;
  return [
    {
      key: "name",
      label: t().common.name,
      cell: ({ name, is_default }) => (
        <>
          {name}
          {is_default && (
            <>
              {" "}
              <Badge tone="accent">{texts.isDefault}</Badge>
            </>
          )}
        </>
      ),
    },
    { key: "provider", label: texts.provider, cell: ({ provider }) => titleOf(provider) },
    {
      key: "hint",
      label: texts.key,
      width: "112px",
      isSecondary: true,
      cell: ({ key_hint }) => <code>{key_hint}</code>,
    },
    {
      key: "address",
      label: texts.address,
      isSecondary: true,
      cell: ({ base_url }) => <span class="soft">{base_url ?? texts.usual}</span>,
    },
    {
      key: "created",
      label: t().common.created,
      width: "136px",
      isSecondary: true,
      cell: ({ created_at }) => <Ago at={created_at} />,
    },
  ];
}

function KeyMenu(
  { providerKey, onTest, onDelete }: {
    providerKey: ProviderKey;
    onTest: (key: ProviderKey) => unknown;
    onDelete: (key: ProviderKey) => void;
  },
) {
  const texts = t().settings.keys;
  return (
    <Menu
      label={t().settings.actionsOf(providerKey.name)}
      icon={Ellipsis}
      items={[
        { label: texts.test, onSelect: () => void onTest(providerKey) },
        { label: texts.delete, isDanger: true, onSelect: () => onDelete(providerKey) },
      ]}
    />
  );
}

// The key is valid, or why it is not, in the words of the provider.
function TestResult({ name, result }: { name: string; result: Result | "busy" | Error }) {
  const texts = t().settings.keys;
  if (result === "busy") return <p class="note waiting">{texts.testing(name)}</p>;
  if (result instanceof Error) return <Problem error={result} />;
  const Icon = result.success ? CircleCheck : CircleX;
  return (
    <p class={`note ${result.success ? "" : "bad"}`}>
      <Icon aria-hidden="true" />
      <span dir="auto">
        {result.success ? texts.works(name) : texts.fails(name)} {result.message}
      </span>
      {formatDuration(result.latency_ms)}
    </p>
  );
}

function DeleteKey(
  { providerKey, onClose }: { providerKey: ProviderKey; onClose: () => void },
) {
  const texts = t().settings.keys;
  const remove = useChange(
    () => api.delete("/api/v1/api-keys/{key_id}", { path: { key_id: providerKey.id } }),
    [KEYS, "/api/v1/models"],
  );
  // The table is gone with the last key.
  const confirm = async () => {
    const isDone = await remove.mutateAsync(undefined).then(() => true, () => false);
    if (!isDone) return;
    onClose();
    notify(texts.deleted(providerKey.name));
  };
  return (
    <Confirm
      title={texts.deleteTitle(providerKey.name)}
      action={texts.delete}
      isBusy={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={confirm}
    >
      <p>{texts.deleteAbout(titleOf(providerKey.provider))}</p>
    </Confirm>
  );
}
