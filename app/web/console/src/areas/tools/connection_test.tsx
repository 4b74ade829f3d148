// Whether a tool reaches its server: an MCP server lists its tools, a database answers a query.
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useChange } from "../../api/queries";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { formatDuration } from "../../ui/format";
import { Problem, Skeleton } from "../../ui/states";
import type { Tool } from "./types";

const PROBE = "SELECT 1";

async function test(
  { id, tool_type }: Tool,
): Promise<{ isGood: boolean; text: string }> {
  const path = { tool_id: id };
  const texts = t().tools;
  if (tool_type === "custom") {
    const { data } = await api.post("/v1/tools/{tool_id}/discover", { path });
    return { isGood: true, text: texts.serverHas(data.length) };
  }
  const { data } = await api.post("/v1/tools/{tool_id}/execute", {
    path,
    body: { input: { query: PROBE } },
  });
  return data.status === "completed"
    ? {
      isGood: true,
      text: texts.answeredIn(formatDuration(data.execution_time_ms)),
    }
    : { isGood: false, text: data.error?.message ?? data.status };
}

export function ConnectionTest({ tool }: { tool: Tool }) {
  const [isOpen, setOpen] = useState(false);
  const run = useChange(() => test(tool));
  const texts = t().tools;
  return (
    <>
      <Button
        onClick={() => {
          setOpen(true);
          run.mutate(undefined);
        }}
      >
        {texts.testConnection}
      </Button>
      {isOpen && (
        <Dialog
          title={texts.testConnection}
          onClose={() => setOpen(false)}
          actions={
            <Button
              busy={run.isPending}
              onClick={() => run.mutate(undefined)}
            >
              {t().common.retry}
            </Button>
          }
        >
          {run.isPending && <Skeleton rows={1} />}
          {run.data && !run.isPending && (
            <div class={`note ${run.data.isGood ? "" : "bad"}`} role="status">
              <span dir="auto">{run.data.text}</span>
            </div>
          )}
          <Problem error={run.error} />
        </Dialog>
      )}
    </>
  );
}
