import { api } from "../../../api/client";
import { useChange, useList } from "../../../api/queries";
import { signOut } from "../../../api/session";
import type { Schemas } from "../../../api/types";
import { t } from "../../../texts";
import { Button } from "../../../ui/button";
import { ListTable } from "../../../ui/list";
import { Section } from "../../../ui/page";
import { Ago, Badge } from "../../../ui/small";
import { Problem, Skeleton } from "../../../ui/states";
import type { Column } from "../../../ui/table";
import { notify } from "../../../ui/toast";

type SessionRow = Schemas["SessionView"];

export function Sessions() {
  const texts = t().people.me;
  const list = useList("/auth/sessions", { query: {} });
  const end = useChange(
    async ({ id, is_current }: SessionRow) => {
      if (is_current) return signOut();
      await api.delete("/auth/sessions/{session_id}", { path: { session_id: id } });
      notify(texts.ended);
    },
    ["/auth/sessions"],
  );
  return (
    <Section about={texts.sessionsAbout}>
      <Problem error={end.error} />
      <ListTable
        label={texts.tabs.sessions}
        list={list}
        columns={listColumns(end.mutate)}
        keyOf={({ id }) => id}
        empty={<Skeleton rows={1} />}
      />
    </Section>
  );
}

function listColumns(onEnd: (row: SessionRow) => void): Column<SessionRow>[] {
  const texts = t().people.me;
  return [
    {
      key: "device",
      label: texts.device,
      cell: ({ device, user_agent, is_current }) => (
        <span title={user_agent ?? undefined}>
          {device} {is_current && <Badge tone="accent">{texts.thisSession}</Badge>}
        </span>
      ),
    },
    {
      key: "address",
      label: texts.address,
      isSecondary: true,
      cell: ({ ip_address }) => ip_address ?? "–",
    },
    {
      key: "signed-in",
      label: texts.signedIn,
      width: "144px",
      isSecondary: true,
      cell: ({ created_at }) => <Ago at={created_at} />,
    },
    {
      key: "seen",
      label: texts.lastSeen,
      width: "144px",
      isSecondary: true,
      cell: ({ last_seen_at }) => <Ago at={last_seen_at} />,
    },
    {
      key: "end",
      label: t().common.actions,
      width: "136px",
      cell: (row) => (
        <Button
          aria-label={row.is_current ? undefined : texts.endOf(row.device)}
          onClick={() => onEnd(row)}
        >
          {row.is_current ? t().rail.signOut : texts.end}
        </Button>
      ),
    },
  ];
}
