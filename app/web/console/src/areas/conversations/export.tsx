// The conversations of the list as a file.
import { Download, X } from "lucide-preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { send, toCurl } from "../../api/client";
import { useChange } from "../../api/queries";
import type { Query } from "../../api/types";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { copy } from "../../ui/copy";
import { Menu } from "../../ui/menu";
import { Problem } from "../../ui/states";
import { notify } from "../../ui/toast";
import type { PATH } from "./filters";

const EXPORT = "/api/v1/conversations/export";
const RELEASE_MS = 60_000;

export function ExportMenu({ query }: { query: Query<typeof PATH> }) {
  const texts = t().conversations;
  const running = useRef<AbortController | null>(null);
  const [isRunning, setRunning] = useState(false);
  const download = useChange(async (format: "jsonl" | "csv") => {
    running.current = new AbortController();
    setRunning(true);
    try {
      const parts = { query: { ...query, format } };
      const response = await send("GET", EXPORT, parts, { signal: running.current.signal });
      // Browsers keep large blobs on the disk.
      saveFile(await response.blob(), `conversations.${format}`);
      notify(texts.exported);
    } catch (error) {
      if (!running.current.signal.aborted) throw error;
    } finally {
      setRunning(false);
    }
  });
  useEffect(() => () => running.current?.abort(), []);
  if (isRunning) {
    return <Button icon={X} onClick={() => running.current?.abort()}>{texts.stopExport}</Button>;
  }
  return (
    <>
      <Problem error={download.error} />
      <Menu
        label={texts.export}
        icon={Download}
        class="button quiet"
        items={[
          { label: texts.exportJsonl, onSelect: () => download.mutate("jsonl") },
          { label: texts.exportCsv, onSelect: () => download.mutate("csv") },
          {
            label: t().common.copyCurl,
            onSelect: () => void copy(toCurl("GET", EXPORT, { query })),
          },
        ]}
      >
        {texts.export}
      </Menu>
    </>
  );
}

function saveFile(file: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), RELEASE_MS);
}
