// Joining: by an invitation, or without one where sign-up is open.
import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";

import { findNext } from "../../../../static/pages/next.js";
import { keepToken } from "../../../../static/pages/session.js";
import { api } from "../../api/client";
import { session, signIn, updateUser } from "../../api/session";
import { CONSOLE } from "../../base";
import { language, t } from "../../texts";
import { TextField } from "../../ui/field";
import { NewPasswordField } from "../../ui/new_password";
import { AccountCard, EndCard } from "./card";
import { CardForm, useSending } from "./form";
import { type Invitation, lookUpInvitation } from "./invitation";
import { MailedLink, useToken } from "./link";

const SIGNUP = document.querySelector<HTMLMetaElement>('meta[name="parley-signup"]')?.content;
const SHOWN = ["email", "first_name", "last_name", "password"];

export function Register() {
  const [token] = useToken();
  const texts = t().accounts;
  if (!token && SIGNUP !== "open") {
    return <EndCard end={{ title: texts.join, text: texts.signUpClosed }} />;
  }
  if (!token) return <Join token="" />;
  return (
    <MailedLink title={texts.join} lookUp={() => lookUpInvitation(token)}>
      {(invitation) => <Join token={token} invitation={invitation} />}
    </MailedLink>
  );
}

interface JoinProps {
  token: string;
  invitation?: Invitation;
}

function Join({ token, invitation }: JoinProps) {
  const texts = t().accounts;
  const [names, setNames] = useState({ first_name: "", last_name: "" });
  const [email, setEmail] = useState(invitation?.email ?? "");
  const [password, setPassword] = useState("");
  const [isJoined, setJoined] = useState(false);
  const enter = useEntrance();
  const sending = useSending(async () => {
    const invited = token ? { invitation_token: token } : {};
    const body = { email, password, ...names, ...invited };
    await api.post("/auth/register", { body }, { isPublic: true });
    await enter(email, password).catch(() => setJoined(true));
  }, SHOWN);
  if (isJoined) return <EndCard end={{ title: texts.joined, text: texts.joinedSignIn }} />;
  const { errors } = sending;
  return (
    <AccountCard
      title={invitation ? texts.joinTenant(invitation.tenant_name) : texts.join}
      about={invitation ? describe(invitation) : texts.createAccount}
    >
      <CardForm sending={sending} action={texts.joinAction}>
        <TextField
          label={t().signIn.email}
          type="email"
          name="email"
          autocomplete="username"
          value={email}
          onInput={setEmail}
          readOnly={Boolean(invitation)}
          error={errors.email}
          required
        />
        <TextField
          label={texts.firstName}
          name="first_name"
          autocomplete="given-name"
          value={names.first_name}
          onInput={(first_name) => setNames({ ...names, first_name })}
          error={errors.first_name}
          maxLength={100}
          required
        />
        <TextField
          label={texts.lastName}
          name="last_name"
          autocomplete="family-name"
          value={names.last_name}
          onInput={(last_name) => setNames({ ...names, last_name })}
          error={errors.last_name}
          maxLength={100}
          required
        />
        <NewPasswordField
          label={t().signIn.password}
          name="password"
          value={password}
          onInput={setPassword}
          error={errors.password}
        />
      </CardForm>
    </AccountCard>
  );
}

function describe({ inviter, tenant_name, role }: Invitation): string {
  const texts = t().accounts;
  const name = t().roles[role];
  return inviter ? texts.invitedBy(inviter, tenant_name, name) : texts.invited(tenant_name, name);
}

// Signs in with what was just typed, and leads on.
function useEntrance(): (email: string, password: string) => Promise<void> {
  const { query, route } = useLocation();
  const [next] = useState(query.next ?? null);
  return async (email, password) => {
    const target = new URL(findNext(next, location.origin, CONSOLE));
    const isScreen = `${target.pathname}/`.startsWith(`${CONSOLE}/`);
    // Removes the used token from the browser's history, before a page is loaded again.
    const chosen = language.peek();
    history.replaceState(null, "", isScreen ? target.href : CONSOLE);
    await signIn(email, password);
    await keepLanguage(email, chosen);
    if (isScreen) {
      route(target.pathname + target.search, true);
    } else {
      // The other pages of this instance have no session of the console.
      keepToken(session.peek()?.access_token ?? "");
      location.replace(target.href);
    }
  };
}

// The language in which somebody has joined is that of their profile.
async function keepLanguage(email: string, chosen: string): Promise<void> {
  const user = session.peek()?.user;
  // Where somebody else was signed in, the page is being loaded again.
  if (user?.email !== email.trim().toLowerCase() || chosen === user.language) return;
  updateUser({ language: chosen });
  await api.put("/api/v1/profile", { body: { language: chosen } }).catch(() => null);
}
