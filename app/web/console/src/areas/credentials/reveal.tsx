// Shows the secrets while the dialog is open, for a minute at most. They are never in the cache of
// what screens have read.
import { useEffect, useState } from "preact/hooks";

import { api } from "../../api/client";
import { queries, refresh } from "../../api/queries";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { CopyButton } from "../../ui/copy";
import { Dialog } from "../../ui/dialog";
import type { Fields } from "../../ui/schema";
import { Problem } from "../../ui/states";
import type { Credential } from "./types";

const SHOWN_MS = 60_000;

export function Reveal({ credential, onClose }: { credential: Credential; onClose: () => void }) {
  const [secrets, setSecrets] = useState<Fields | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const texts = t().credentials;
  useEffect(() => {
    if (!secrets) return undefined;
    const timer = setTimeout(onClose, SHOWN_MS);
    return () => clearTimeout(timer);
  }, [secrets]);
  const reveal = async () => {
    setBusy(true);
    setError(null);
    try {
      const path = { credential_id: credential.id };
      const answer = await api.get("/v1/credentials/{credential_id}/reveal", { path });
      setSecrets(answer.secrets);
      await refresh(queries, ["/v1/credentials/{credential_id}/audit"]);
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  return (
    <Dialog
      title={texts.reveal}
      onClose={onClose}
      actions={secrets ? <Button onClick={onClose}>{t().common.close}</Button> : (
        <>
          <Button onClick={onClose}>{t().common.cancel}</Button>
          <Button kind="primary" busy={isBusy} onClick={reveal}>{texts.revealNow}</Button>
        </>
      )}
    >
      <p class="soft">{secrets ? texts.revealed : texts.revealAbout}</p>
      <Problem error={error} />
      {secrets && <Secrets secrets={secrets} />}
    </Dialog>
  );
}

function Secrets({ secrets }: { secrets: Fields }) {
  const labels: Partial<Record<string, string>> = t().credentials.fields;
  return (
    <dl class="stack">
      {Object.entries(secrets).map(([name, value]) => {
        const text = typeof value === "string" ? value : JSON.stringify(value);
        return (
          <div key={name}>
            <dt class="row between">
              <strong dir="auto">{labels[name] ?? name}</strong>
              <CopyButton text={text} kind="plain" />
            </dt>
            <dd>
              <pre class="code" tabIndex={0} dir="auto">{text || "–"}</pre>
            </dd>
          </div>
        );
      })}
    </dl>
  );
}
