// The fields of a sign-in, with the code as a second step where the account asks for one.
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { type MfaRequired, signIn, signInWithCode } from "../../api/session";
import { href } from "../../base";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { PasswordField, TextField } from "../../ui/field";
import { Problem } from "../../ui/states";

export function SignInForm({ email: known }: { email?: string }) {
  const [email, setEmail] = useState(known ?? "");
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const [mfa, setMfa] = useState<MfaRequired | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const form = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => {
    form.current?.querySelector<HTMLInputElement>("input:not([readonly])")?.focus();
  }, [mfa]);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      if (mfa) await signInWithCode(mfa.mfa_token, code.trim());
      else setMfa(await signIn(email, password));
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form ref={form} onSubmit={submit} class="stack">
      {mfa
        ? (
          <TextField
            label={t().signIn.code}
            hint={t().signIn.codeAbout}
            value={code}
            onInput={setCode}
            name="code"
            autocomplete="one-time-code"
            required
          />
        )
        : (
          <>
            <TextField
              label={t().signIn.email}
              type="email"
              name="email"
              autocomplete="username"
              value={email}
              onInput={setEmail}
              readOnly={known !== undefined}
              required
            />
            <PasswordField
              label={t().signIn.password}
              name="password"
              autocomplete="current-password"
              value={password}
              onInput={setPassword}
              required
            />
          </>
        )}
      <Problem error={error} />
      <Button kind="primary" type="submit" busy={isBusy}>
        {mfa ? t().signIn.verify : t().signIn.submit}
      </Button>
      {!mfa && <a href={href("/forgot-password")}>{t().signIn.forgot}</a>}
    </form>
  );
}
