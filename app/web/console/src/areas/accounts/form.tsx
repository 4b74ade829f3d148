// A form of one card: its fields, what is wrong with them, and its button.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { type Problem as ApiProblem, toProblem } from "../../api/problem";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { Problem } from "../../ui/states";

export interface Sending {
  // The messages of the server, by the names of fields.
  errors: Record<string, string>;
  problem: ApiProblem | null;
  isBusy: boolean;
  submit: (event: Event) => void;
}

// `shown` are the fields that show their message themselves.
export function useSending(send: () => Promise<void>, shown: string[]): Sending {
  const [problem, setProblem] = useState<ApiProblem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const errors = problem?.fields ?? {};
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    const form = event.currentTarget as HTMLFormElement;
    setBusy(true);
    setProblem(null);
    try {
      await send();
    } catch (error) {
      setProblem(toProblem(error));
      requestAnimationFrame(() => form.querySelector<HTMLElement>("[aria-invalid]")?.focus());
    } finally {
      setBusy(false);
    }
  };
  const isShown = shown.some((name) => errors[name]);
  return { errors, problem: isShown ? null : problem, isBusy, submit };
}

export function CardForm(
  { sending, action, children }: {
    sending: Sending;
    action: string;
    children?: ComponentChildren;
  },
) {
  const { problem } = sending;
  const token = problem?.fields.token ?? problem?.fields.invitation_token;
  return (
    <form class="stack" onSubmit={sending.submit}>
      {children}
      {token
        ? <p class="problem" role="alert" dir="auto">{`${t().accounts.thisLink} ${token}`}</p>
        : <Problem error={problem} />}
      <Button kind="primary" type="submit" busy={sending.isBusy}>{action}</Button>
    </form>
  );
}
