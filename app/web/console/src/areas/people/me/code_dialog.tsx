import { useState } from "preact/hooks";

import { api } from "../../../api/client";
import { Problem as ApiProblem } from "../../../api/problem";
import { useChange } from "../../../api/queries";
import { t } from "../../../texts";
import { Button } from "../../../ui/button";
import { Dialog } from "../../../ui/dialog";
import { TextField } from "../../../ui/field";
import { Problem } from "../../../ui/states";

interface Props {
  title: string;
  about: string;
  action: string;
  isDanger?: boolean;
  // What is done with the code; by default it is shown to the server.
  send?: (code: string) => Promise<unknown>;
  onDone: () => void;
  onClose: () => void;
}

async function showCode(code: string): Promise<void> {
  const { valid } = await api.post("/api/v1/mfa/verify", { body: { code } });
  if (!valid) throw new ApiProblem(422, "wrong_code", "", { code: t().people.me.wrongCode }, null);
}

// Asks for a code of a device, or a recovery code.
export function CodeDialog(
  { title, about, action, isDanger, send = showCode, onDone, onClose }: Props,
) {
  const [code, setCode] = useState("");
  const check = useChange(() => send(code.trim()));
  const wrong = check.error?.fields.code;
  const submit = async (event: Event) => {
    event.preventDefault();
    try {
      await check.mutateAsync(undefined);
    } catch {
      return;
    }
    onDone();
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{t().common.cancel}</Button>
          <Button
            kind={isDanger ? "danger" : "primary"}
            type="submit"
            form="mfa-code"
            busy={check.isPending}
          >
            {action}
          </Button>
        </>
      }
    >
      <p>{about}</p>
      <form id="mfa-code" class="stack" onSubmit={submit}>
        <TextField
          label={t().signIn.code}
          value={code}
          onInput={setCode}
          error={wrong}
          autocomplete="one-time-code"
          maxLength={32}
          autoFocus
          required
        />
        {!wrong && <Problem error={check.error} />}
      </form>
    </Dialog>
  );
}
