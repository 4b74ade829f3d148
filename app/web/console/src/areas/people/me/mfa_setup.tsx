import { useState } from "preact/hooks";

import { api } from "../../../api/client";
import { useChange } from "../../../api/queries";
import type { Schemas } from "../../../api/types";
import { t } from "../../../texts";
import { Button } from "../../../ui/button";
import { CopyText } from "../../../ui/copy";
import { Dialog } from "../../../ui/dialog";
import { TextField } from "../../../ui/field";
import { Problem } from "../../../ui/states";

export type Setup = Schemas["MfaSetup"];

// The server has drawn the code: it is in the answer, and nothing is asked elsewhere.
export function SetUp(
  { setup, onClose, onDone }: { setup: Setup; onClose: () => void; onDone: () => void },
) {
  const texts = t().people.me;
  const [code, setCode] = useState("");
  const [name, setName] = useState("");
  const enable = useChange(() => {
    const named = name.trim() ? { name: name.trim() } : {};
    return api.post("/api/v1/mfa/enable", { body: { code: code.trim(), ...named } });
  });
  const errors = enable.error?.fields ?? {};
  const submit = async (event: Event) => {
    event.preventDefault();
    if (await enable.mutateAsync(undefined).catch(() => null)) onDone();
  };
  return (
    <Dialog
      title={texts.mfaTitle}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{t().common.cancel}</Button>
          <Button kind="primary" type="submit" form="enable-mfa" busy={enable.isPending}>
            {texts.confirm}
          </Button>
        </>
      }
    >
      <p>{texts.scan}</p>
      <img class="qr-code" src={setup.qr_code_url} alt={texts.qrCode} />
      <p>
        {texts.secret} <CopyText text={setup.secret} />
      </p>
      <form id="enable-mfa" class="stack" onSubmit={submit}>
        <TextField
          label={texts.code}
          hint={texts.codeHint}
          value={code}
          onInput={setCode}
          error={errors.code}
          inputMode="numeric"
          autocomplete="one-time-code"
          maxLength={32}
          autoFocus
          required
        />
        <TextField
          label={texts.deviceName}
          hint={texts.deviceNameHint}
          value={name}
          onInput={setName}
          error={errors.name}
          maxLength={100}
          isOptional
        />
        {Object.keys(errors).length === 0 && <Problem error={enable.error} />}
      </form>
    </Dialog>
  );
}
