import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import { formatDuration, formatNumber } from "../../ui/format";
import { Badge } from "../../ui/small";
import { type Column, Table } from "../../ui/table";

type Queue = Schemas["QueueLoad"];

// Older than this, a queue has too few workers or none.
const OLD_SECONDS = 60;

export function Queues({ queues }: { queues: Queue[] }) {
  const texts = t().settings.work;
  if (!queues.length) return <p class="card soft">{texts.noQueues}</p>;
  return (
    <Table<Queue>
      label={texts.queues}
      rows={queues}
      keyOf={({ queue }) => queue}
      columns={[
        { key: "queue", label: texts.queue, cell: ({ queue }) => queue || texts.unknownQueue },
        figure("waiting"),
        figure("scheduled"),
        figure("running"),
        figure("dead"),
        {
          key: "age",
          label: texts.age,
          width: "120px",
          isNumber: true,
          cell: (queue) => <Age queue={queue} />,
        },
      ]}
    />
  );
}

function figure(key: "waiting" | "scheduled" | "running" | "dead"): Column<Queue> {
  return {
    key,
    label: t().settings.work.statuses[key],
    width: "96px",
    isNumber: true,
    isSecondary: key !== "dead",
    cell: (queue) =>
      key === "dead" && queue.dead
        ? <Badge tone="bad">{formatNumber(queue.dead)}</Badge>
        : formatNumber(queue[key]),
  };
}

function Age({ queue: { oldest_waiting_at, oldest_waiting_seconds } }: { queue: Queue }) {
  if (!oldest_waiting_at) return <>–</>;
  const text = formatDuration(oldest_waiting_seconds * 1000);
  return oldest_waiting_seconds > OLD_SECONDS ? <Badge tone="warn">{text}</Badge> : <>{text}</>;
}
