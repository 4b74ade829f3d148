// The mail to choose a new password, and the choice.
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { session, signOut } from "../../api/session";
import { t } from "../../texts";
import { TextField } from "../../ui/field";
import { NewPasswordField } from "../../ui/new_password";
import { AccountCard, EndCard } from "./card";
import { CardForm, useSending } from "./form";
import { lookUpLink, MailedLink, useToken } from "./link";

export function ForgotPassword() {
  const texts = t().accounts;
  const [email, setEmail] = useState(session.peek()?.user.email ?? "");
  const [isSent, setSent] = useState(false);
  const sending = useSending(async () => {
    await api.post("/auth/forgot-password", { body: { email } }, { isPublic: true });
    setSent(true);
  }, ["email"]);
  if (isSent) return <EndCard end={{ title: texts.mailSent, text: texts.mailSentAbout(email) }} />;
  return (
    <AccountCard title={texts.forgotTitle} about={texts.forgotAbout}>
      <CardForm sending={sending} action={texts.sendMail}>
        <TextField
          label={t().signIn.email}
          type="email"
          name="email"
          autocomplete="username"
          value={email}
          onInput={setEmail}
          error={sending.errors.email}
          required
          autoFocus
        />
      </CardForm>
    </AccountCard>
  );
}

export function ResetPassword() {
  const [token, forget] = useToken();
  const texts = t().accounts;
  return (
    <MailedLink title={texts.resetTitle} lookUp={() => lookUpLink("reset_password", token)}>
      {({ email }) => <Reset token={token} email={email} onUsed={forget} />}
    </MailedLink>
  );
}

function Reset(
  { token, email, onUsed }: { token: string; email: string; onUsed: () => void },
) {
  const texts = t().accounts;
  const [password, setPassword] = useState("");
  const [isChanged, setChanged] = useState(false);
  const sending = useSending(async () => {
    const body = { token, new_password: password };
    await api.post("/auth/reset-password", { body }, { isPublic: true });
    onUsed();
    setChanged(true);
    // The session of this browser has ended with all others.
    if (session.peek()?.user.email === email) await signOut().catch(() => null);
  }, ["new_password"]);
  if (isChanged) return <EndCard end={{ title: texts.resetDone, text: texts.resetDoneAbout }} />;
  return (
    <AccountCard title={texts.resetTitle} about={texts.resetAbout}>
      <CardForm sending={sending} action={texts.resetAction}>
        <TextField
          label={t().signIn.email}
          type="email"
          autocomplete="username"
          value={email}
          onInput={() => {}}
          readOnly
        />
        <NewPasswordField
          label={texts.newPassword}
          name="new_password"
          value={password}
          onInput={setPassword}
          error={sending.errors.new_password}
        />
      </CardForm>
    </AccountCard>
  );
}
