import { Ellipsis, Eye, RefreshCw, Trash2 } from "lucide-preact";
import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";

import { api, toCurl } from "../../api/client";
import { useChange, useRead } from "../../api/queries";
import { may } from "../../api/session";
import { href } from "../../base";
import { t } from "../../texts";
import { CopyButton, CopyText } from "../../ui/copy";
import { Confirm } from "../../ui/dialog";
import { RecordHistory } from "../../ui/history";
import { Menu, type MenuItem } from "../../ui/menu";
import { Page } from "../../ui/page";
import { type Tab, Tabs } from "../../ui/small";
import { Loaded } from "../../ui/states";
import { notify } from "../../ui/toast";
import { AccessRules } from "./access";
import { Audit } from "./audit";
import { CredentialState } from "./list";
import { Overview } from "./overview";
import { ReplaceSecrets } from "./replace_secrets";
import { Reveal } from "./reveal";
import type { Credential } from "./types";

const PATH = "/v1/credentials/{credential_id}";

export function CredentialScreen({ id }: { id: string }) {
  const query = useRead(PATH, { path: { credential_id: id } });
  const credential = query.data;
  const texts = t().credentials;
  const labels = {
    name: t().common.name,
    description: t().common.description,
    type: texts.type,
    secrets: texts.secrets,
    metadata: texts.metadata,
    access: texts.access,
  };
  const tabs: Tab[] = [
    ["overview", texts.overview],
    ["access", texts.access],
    ["audit", texts.audit],
    ["history", t().history.title],
  ];
  return (
    <Page
      title={credential?.name ?? texts.credential}
      parents={[{ label: t().rail.credentials, to: "/credentials" }]}
      beside={credential && <CredentialState credential={credential} />}
      actions={credential && <Actions credential={credential} />}
    >
      <Loaded query={query}>
        {(record) => (
          <Tabs label={texts.credential} tabs={tabs}>
            {(tab) => {
              if (tab === "access") return <AccessRules credential={record} />;
              if (tab === "history") {
                return <RecordHistory kind="credential" recordId={id} labels={labels} />;
              }
              if (tab === "audit") return <Audit id={id} />;
              return <Overview record={record} />;
            }}
          </Tabs>
        )}
      </Loaded>
    </Page>
  );
}

type Task = "replace" | "reveal" | "delete";

function Actions({ credential }: { credential: Credential }) {
  const [task, setTask] = useState<Task | null>(null);
  const { id } = credential;
  const texts = t().credentials;
  const close = () => setTask(null);
  const items: (MenuItem | false)[] = [
    may("credentials:write") &&
    { label: texts.replace, icon: RefreshCw, onSelect: () => setTask("replace") },
    may("credentials:reveal") &&
    { label: texts.reveal, icon: Eye, onSelect: () => setTask("reveal") },
    may("credentials:write") &&
    { label: texts.delete, icon: Trash2, isDanger: true, onSelect: () => setTask("delete") },
  ];
  const shown = items.filter((item): item is MenuItem => Boolean(item));
  return (
    <>
      <CopyText text={id} />
      <CopyButton
        text={toCurl("GET", PATH, { path: { credential_id: id } })}
        label={t().common.copyCurl}
      />
      {shown.length > 0 && <Menu label={t().common.actions} icon={Ellipsis} items={shown} />}
      {task === "replace" && <ReplaceSecrets credential={credential} onClose={close} />}
      {task === "reveal" && <Reveal credential={credential} onClose={close} />}
      {task === "delete" && <Delete credential={credential} onClose={close} />}
    </>
  );
}

function Delete({ credential, onClose }: { credential: Credential; onClose: () => void }) {
  const { route } = useLocation();
  const texts = t().credentials;
  const { id, name } = credential;
  const remove = useChange(
    () => api.delete(PATH, { path: { credential_id: id } }),
    ["/v1/credentials", "/v1/credentials/audit"],
  );
  const confirm = async () => {
    await remove.mutateAsync(undefined);
    route(href("/credentials"));
    notify(texts.deleted(name));
  };
  return (
    <Confirm
      title={texts.deleteTitle(name)}
      action={texts.delete}
      isBusy={remove.isPending}
      error={remove.error}
      onConfirm={() => void confirm().catch(() => {})}
      onClose={onClose}
    >
      <p>{texts.deleteAbout}</p>
    </Confirm>
  );
}
