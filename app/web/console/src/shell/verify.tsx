// Asks users to verify their address, until they have.
import { MailWarning } from "lucide-preact";
import { useState } from "preact/hooks";

import { api } from "../api/client";
import { useChange } from "../api/queries";
import { refresh, session } from "../api/session";
import { t } from "../texts";
import { Button } from "../ui/button";
import { Problem } from "../ui/states";

export function VerifyBanner() {
  const texts = t().verify;
  const user = session.value?.user;
  const [isChecking, setChecking] = useState(false);
  const send = useChange(() => api.post("/auth/verify-email/resend", {}));
  if (!user || user.email_verified) return null;
  const check = async () => {
    setChecking(true);
    await refresh().finally(() => setChecking(false));
  };
  return (
    <section class="note warn banner" aria-label={texts.title}>
      <MailWarning aria-hidden="true" />
      <span role="status" dir="auto">
        {send.isSuccess ? texts.sent(user.email) : texts.banner(user.email)}
      </span>
      {!send.isSuccess && (
        <Button busy={send.isPending} onClick={() => send.mutate(undefined)}>
          {texts.sendAgain}
        </Button>
      )}
      <Button busy={isChecking} onClick={check}>{texts.checkAgain}</Button>
      <Problem error={send.error} />
    </section>
  );
}
