import { Download } from "lucide-preact";
import { useEffect, useState } from "preact/hooks";

import { t } from "../../../texts";
import { Button } from "../../../ui/button";
import { CopyButton } from "../../../ui/copy";
import { Dialog } from "../../../ui/dialog";

// Shown once. It closes by its button alone, so that a stray click loses nothing.
export function RecoveryCodes({ codes, onClose }: { codes: string[]; onClose: () => void }) {
  const texts = t().people.me;
  const text = codes.join("\n");
  return (
    <Dialog
      title={texts.codesTitle}
      canDismiss={false}
      onClose={onClose}
      actions={<Button kind="primary" onClick={onClose}>{texts.kept}</Button>}
    >
      <p>{texts.codesAbout}</p>
      <ul class="recovery-codes code" aria-label={texts.codesLabel}>
        {codes.map((code) => <li key={code}>{code}</li>)}
      </ul>
      <div class="actions">
        <CopyButton text={text} label={texts.copyCodes} />
        <DownloadButton text={`${text}\n`} />
      </div>
    </Dialog>
  );
}

function DownloadButton({ text }: { text: string }) {
  const [url, setUrl] = useState("");
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [text]);
  return (
    <a class="button quiet" href={url} download={t().people.me.fileName}>
      <Download aria-hidden="true" />
      {t().people.me.download}
    </a>
  );
}
