// Links that confirm an address by a click: mail programs that open links confirm nothing.
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { refresh, session } from "../../api/session";
import { t } from "../../texts";
import { AccountCard, type End, EndCard } from "./card";
import { CardForm, useSending } from "./form";
import { lookUpLink, MailedLink, useToken } from "./link";

export function VerifyEmail() {
  const [token, forget] = useToken();
  const texts = t().accounts;
  const verify = async () => {
    await api.post("/auth/verify-email", { body: { token } }, { isPublic: true });
    // The session has all permissions of its role from now on.
    if (session.peek()) await refresh().catch(() => false);
  };
  return (
    <MailedLink title={t().verify.title} lookUp={() => lookUpLink("verify_email", token)}>
      {({ email }) => (
        <Confirmation
          title={t().verify.title}
          about={texts.verifyAbout(email)}
          action={texts.verifyAction}
          confirm={verify}
          onUsed={forget}
          done={{ title: texts.verified, text: texts.verifiedAbout, link: toConsole() }}
        />
      )}
    </MailedLink>
  );
}

export function ConfirmRecipient() {
  const [token, forget] = useToken();
  const texts = t().accounts;
  if (!token) return <EndCard end={{ title: texts.invalidTitle, text: texts.incomplete }} />;
  return (
    <Confirmation
      title={texts.recipientTitle}
      about={texts.recipientAbout}
      action={texts.recipientAction}
      confirm={async () => {
        await api.post("/api/v1/public/form-recipients/confirm", { body: { token } }, {
          isPublic: true,
        });
      }}
      onUsed={forget}
      done={{ title: texts.recipientDone, text: texts.recipientDoneAbout, link: toConsole() }}
    />
  );
}

function toConsole(): NonNullable<End["link"]> {
  return session.peek()
    ? { to: "/", label: t().accounts.toConsole }
    : { to: "/sign-in", label: t().signIn.submit };
}

function Confirmation(
  { title, about, action, confirm, onUsed, done }: {
    title: string;
    about: string;
    action: string;
    confirm: () => Promise<void>;
    onUsed: () => void;
    done: End;
  },
) {
  const [isDone, setDone] = useState(false);
  const sending = useSending(async () => {
    await confirm();
    onUsed();
    setDone(true);
  }, []);
  if (isDone) return <EndCard end={done} />;
  return (
    <AccountCard title={title} about={about}>
      <CardForm sending={sending} action={action} />
    </AccountCard>
  );
}
