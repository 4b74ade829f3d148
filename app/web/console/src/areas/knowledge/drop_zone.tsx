// Takes files that are chosen or dragged in, and shows those that are on their way.
import { FilePlus2, Library, RotateCw, Upload as UploadIcon, X } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";

import { t } from "../../texts";
import { Button, IconButton } from "../../ui/button";
import { Switch } from "../../ui/field";
import { formatPercent, formatSize } from "../../ui/format";
import { Progress } from "../../ui/small";
import { AddText } from "./add_text";
import { addFiles, dismiss, ENDINGS, retry, type Upload, uploads } from "./uploads";

// While there are no documents yet, it says what can be added.
export function DropZone(
  { agentId, isFirst, children }: {
    agentId: string;
    isFirst: boolean;
    children: ComponentChildren;
  },
) {
  const [isOver, setOver] = useState(false);
  const [isInternal, setInternal] = useState(false);
  const [isWriting, setWriting] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const texts = t().knowledge;
  return (
    <div
      class="stack"
      onDragOver={(event) => {
        if (!event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
      }}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        addFiles(agentId, event.dataTransfer?.files ?? [], isInternal);
      }}
    >
      <section
        class={`drop-zone ${isOver ? "over" : ""} ${isFirst ? "large" : ""}`}
        aria-label={texts.addDocuments}
      >
        {isFirst && (
          <>
            <Library aria-hidden="true" class="empty-icon" />
            <h2>{texts.noDocuments}</h2>
            <p class="soft">{texts.noDocumentsAbout}</p>
          </>
        )}
        <div class="row">
          <Button kind="primary" icon={UploadIcon} onClick={() => input.current?.click()}>
            {texts.chooseFiles}
          </Button>
          <Button icon={FilePlus2} onClick={() => setWriting(true)}>{texts.writeText}</Button>
        </div>
        {(isOver || !isFirst) && <p class="soft">{isOver ? texts.dropNow : texts.dropHint}</p>}
        <Switch label={texts.addInternal} value={isInternal} onChange={setInternal} />
        <input
          ref={input}
          type="file"
          multiple
          hidden
          accept={ENDINGS}
          aria-label={texts.chooseFiles}
          onChange={(event) => {
            addFiles(agentId, event.currentTarget.files ?? [], isInternal);
            event.currentTarget.value = "";
          }}
        />
      </section>
      <UploadList agentId={agentId} />
      {children}
      {isWriting && (
        <AddText
          agentId={agentId}
          isInternal={isInternal}
          onClose={() => setWriting(false)}
        />
      )}
    </div>
  );
}

function UploadList({ agentId }: { agentId: string }) {
  const own = uploads.value.filter((entry) => entry.agentId === agentId);
  if (!own.length) return null;
  return (
    <ul class="rows" aria-label={t().knowledge.uploads}>
      {own.map((entry) => <UploadRow key={entry.id} entry={entry} />)}
    </ul>
  );
}

function UploadRow({ entry: { id, file, state, share, error } }: { entry: Upload }) {
  const texts = t().knowledge;
  return (
    <li>
      <div class="grow">
        <div class="row between">
          <span dir="auto">{file.name}</span>
          <span class="soft">{formatSize(file.size)}</span>
        </div>
        {error
          ? (
            <p class="problem" role="alert" dir="auto">
              {error.isNetwork ? t().errors.network : error.fields.files ?? error.message}
              {error.requestId && (
                <span class="soft">{` ${t().errors.requestId}: ${error.requestId}`}</span>
              )}
            </p>
          )
          : (
            <Progress
              value={share}
              max={1}
              label={state === "waiting" ? texts.waiting : texts.sending(formatPercent(share))}
            />
          )}
      </div>
      {error && (
        <>
          <IconButton icon={RotateCw} label={t().common.retry} onClick={() => retry(id)} />
          <IconButton icon={X} label={texts.dismiss} onClick={() => dismiss(id)} />
        </>
      )}
    </li>
  );
}
