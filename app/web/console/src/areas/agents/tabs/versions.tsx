import { useState } from "preact/hooks";

import { api } from "../../../api/client";
import { useChange, useList } from "../../../api/queries";
import type { Schemas } from "../../../api/types";
import { t } from "../../../texts";
import { Button } from "../../../ui/button";
import { Dialog } from "../../../ui/dialog";
import { changesBetween, Diff } from "../../../ui/diff";
import { ListTable } from "../../../ui/list";
import { Section } from "../../../ui/page";
import { Ago, Badge } from "../../../ui/small";
import { Problem } from "../../../ui/states";
import { notify } from "../../../ui/toast";
import { fieldLabels } from "../publish";
import type { TabProps } from "../tabs";

type Version = Schemas["VersionView"];
const VERSIONS = "/api/v1/agents/{agent_id}/versions";

export function Versions({ agent, onChanged }: TabProps) {
  const list = useList(VERSIONS, { path: { agent_id: agent.id } });
  const [open, setOpen] = useState<Version | null>(null);
  const current = list.rows?.[0];
  return (
    <Section title={t().agents.tabs.versions} about={t().agents.versionsAbout}>
      <ListTable
        label={t().agents.tabs.versions}
        list={list}
        keyOf={({ version }) => String(version)}
        onOpen={setOpen}
        empty={null}
        columns={[
          {
            key: "version",
            label: t().agents.version,
            width: "104px",
            cell: ({ version }) => (
              <>
                {version}{" "}
                {version === current?.version && <Badge tone="good">{t().agents.live}</Badge>}
              </>
            ),
          },
          { key: "note", label: t().agents.note, cell: ({ note }) => note || "–" },
          {
            key: "model",
            label: t().agents.model,
            isSecondary: true,
            cell: ({ primary_model }) => primary_model,
          },
          {
            key: "created",
            label: t().common.created,
            width: "136px",
            cell: ({ created_at }) => <Ago at={created_at} />,
          },
        ]}
      />
      {open && current && (
        <VersionDialog
          agentId={agent.id}
          version={open}
          current={current}
          onClose={() => setOpen(null)}
          onRestored={() => {
            setOpen(null);
            onChanged();
          }}
        />
      )}
    </Section>
  );
}

function behaviourOf({ primary_model, system_prompt, temperature, max_tokens }: Version) {
  return { primary_model, system_prompt, temperature, max_tokens };
}

function VersionDialog(
  { agentId, version, current, onClose, onRestored }: {
    agentId: string;
    version: Version;
    current: Version;
    onClose: () => void;
    onRestored: () => void;
  },
) {
  const texts = t().agents;
  const changes = changesBetween(behaviourOf(version), behaviourOf(current));
  const restore = useChange(() =>
    api.post("/api/v1/agents/{agent_id}/versions/{version}/restore", {
      path: { agent_id: agentId, version: String(version.version) },
    })
  );
  return (
    <Dialog
      title={texts.versionTitle(version.version)}
      isWide
      onClose={onClose}
      actions={changes.length > 0 && (
        <Button
          kind="primary"
          busy={restore.isPending}
          onClick={() =>
            restore.mutate(undefined, {
              onSuccess: () => {
                notify(texts.restored(version.version));
                onRestored();
              },
            })}
        >
          {texts.restore}
        </Button>
      )}
    >
      {changes.length === 0 ? <p class="soft">{texts.sameAsLive}</p> : (
        <Diff
          changes={changes}
          labels={fieldLabels()}
          left={texts.versionTitle(version.version)}
          right={texts.live}
        />
      )}
      <Problem error={restore.error} />
    </Dialog>
  );
}
