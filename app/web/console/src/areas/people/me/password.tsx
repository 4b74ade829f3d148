import { useState } from "preact/hooks";

import { api } from "../../../api/client";
import { useChange } from "../../../api/queries";
import { session } from "../../../api/session";
import { t } from "../../../texts";
import { Button } from "../../../ui/button";
import { PasswordField } from "../../../ui/field";
import { NewPasswordField } from "../../../ui/new_password";
import { Section } from "../../../ui/page";
import { Problem } from "../../../ui/states";

export function Password() {
  const texts = t().people.me;
  const [current, setCurrent] = useState("");
  const [next, setNext] = useState("");
  const change = useChange(
    async () => {
      const body = { current_password: current, new_password: next };
      await api.post("/auth/change-password", { body });
      setCurrent("");
      setNext("");
    },
    ["/auth/sessions"],
  );
  const errors = change.error?.fields ?? {};
  const submit = (event: Event) => {
    event.preventDefault();
    change.mutate(undefined);
  };
  return (
    <Section title={texts.passwordTitle} about={texts.passwordAbout}>
      <form class="card stack narrow" onSubmit={submit}>
        {/* So that password managers know whose password it is. */}
        <input
          type="email"
          autocomplete="username"
          value={session.value?.user.email}
          readOnly
          hidden
        />
        <PasswordField
          label={texts.currentPassword}
          name="current_password"
          autocomplete="current-password"
          value={current}
          onInput={setCurrent}
          error={errors.current_password}
          required
        />
        <NewPasswordField
          label={t().accounts.newPassword}
          name="new_password"
          value={next}
          onInput={setNext}
          error={errors.new_password}
        />
        {Object.keys(errors).length === 0 && <Problem error={change.error} />}
        <div class="form-end">
          <span role="status" class="grow">{change.isSuccess && texts.passwordChanged}</span>
          <Button type="submit" busy={change.isPending}>{texts.changePassword}</Button>
        </div>
      </form>
    </Section>
  );
}
