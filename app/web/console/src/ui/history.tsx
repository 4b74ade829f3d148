// Who changed a record, when, and what.
import { History as HistoryIcon } from "lucide-preact";
import { useState } from "preact/hooks";

import { useList } from "../api/queries";
import type { Query, Schemas } from "../api/types";
import { t } from "../texts";
import { Dialog } from "./dialog";
import { Diff } from "./diff";
import { ListTable } from "./list";
import { Ago, Badge } from "./small";
import { Empty } from "./states";

type Entry = Schemas["HistoryEntryView"];
type Kind = Query<"/api/v1/history">["kind"];

// `labels` are the names of fields, as the record's form shows them.
export function RecordHistory(
  { kind, recordId, labels }: {
    kind: Kind;
    recordId: string;
    labels?: Record<string, string>;
  },
) {
  const list = useList("/api/v1/history", { query: { kind, record_id: recordId } });
  const [open, setOpen] = useState<Entry | null>(null);
  const texts = t().history;
  return (
    <>
      <ListTable
        label={texts.title}
        list={list}
        keyOf={({ id }) => id}
        onOpen={setOpen}
        empty={<Empty icon={HistoryIcon} title={texts.empty}>{texts.emptyAbout}</Empty>}
        columns={[
          {
            key: "action",
            label: texts.action,
            width: "min(128px, 30%)",
            cell: ({ action }) => <Badge>{texts.actions[action]}</Badge>,
          },
          {
            key: "fields",
            label: texts.fields,
            cell: ({ changes }) =>
              [...new Set(changes.map(({ path }) => nameOf(path, labels)))].join(", ") || "–",
          },
          { key: "actor", label: texts.actor, isSecondary: true, cell: actorOf },
          {
            key: "at",
            label: texts.when,
            width: "min(136px, 32%)",
            cell: ({ created_at }) => <Ago at={created_at} />,
          },
        ]}
      />
      {open && (
        <Dialog
          title={`${texts.actions[open.action]} · ${actorOf(open)}`}
          isWide
          onClose={() => setOpen(null)}
        >
          {open.truncated && <p class="note warn">{texts.truncated}</p>}
          <Diff
            changes={open.changes.map(({ path, before, after }) => ({
              field: nameOf(path, labels),
              before,
              after,
            }))}
            left={texts.before}
            right={texts.after}
          />
        </Dialog>
      )}
    </>
  );
}

function nameOf(path: string, labels: Record<string, string> | undefined): string {
  // Of a part of the record, such as `tools.tool_1.is_enabled`, the name of what it is part of.
  return labels?.[path] ?? labels?.[path.split(".", 1)[0]] ?? path;
}

function actorOf({ actor }: Entry): string {
  return actor.name ?? actor.id ?? t().history.system;
}
