// A new password, with the rules that it fulfils while it is typed. The server decides.
import { Check, Circle } from "lucide-preact";

import { listFulfilled } from "../../../static/pages/passwords.js";
import { t } from "../texts";
import { PasswordField } from "./field";

const RULES = ["length", "upper", "lower", "digit"] as const;

export function NewPasswordField(
  { label, name, value, onInput, error }: {
    label: string;
    name: string;
    value: string;
    onInput: (value: string) => void;
    error?: string | undefined;
  },
) {
  const fulfilled: string[] = listFulfilled(value);
  return (
    <PasswordField
      label={label}
      name={name}
      autocomplete="new-password"
      value={value}
      onInput={onInput}
      error={error}
      required
      hint={
        <span class="rules">
          {RULES.map((rule) => {
            const isMet = fulfilled.includes(rule);
            return (
              <span key={rule} class={isMet ? "met" : ""}>
                {isMet ? <Check aria-hidden="true" /> : <Circle aria-hidden="true" />}
                {t().accounts.rules[rule]}
                {isMet && <span class="hidden">{` (${t().accounts.ruleMet})`}</span>}
              </span>
            );
          })}
        </span>
      }
    />
  );
}
