// Fields of forms: a label, a control, a hint and what is wrong with the value.
import { Eye, EyeOff, Search } from "lucide-preact";
import type { ComponentChildren, InputHTMLAttributes, TextareaHTMLAttributes } from "preact";
import { useId, useState } from "preact/hooks";

import { t } from "../texts";
import { IconButton } from "./button";

interface Common {
  label: string;
  hint?: ComponentChildren;
  error?: string | undefined;
  isOptional?: boolean;
}

export interface Control {
  id: string;
  "aria-describedby": string | undefined;
  "aria-invalid": boolean | undefined;
}

export function Field(
  { label, hint, error, isOptional, children }: Common & {
    children: (control: Control) => ComponentChildren;
  },
) {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div class="field">
      <label for={id}>
        {label}
        {isOptional && <span class="soft">{` (${t().common.optional})`}</span>}
      </label>
      {children({
        id,
        "aria-describedby": described || undefined,
        "aria-invalid": error ? true : undefined,
      })}
      {hint && <p class="hint" id={`${id}-hint`}>{hint}</p>}
      {error && <p class="problem" id={`${id}-error`} dir="auto">{error}</p>}
    </div>
  );
}

type TextProps =
  & Common
  & Omit<InputHTMLAttributes<HTMLInputElement>, "onInput" | "value" | "label">
  & {
    value: string;
    onInput: (value: string) => void;
  };

export function TextField({ label, hint, error, isOptional, onInput, ...rest }: TextProps) {
  return (
    <Field label={label} hint={hint} error={error} isOptional={isOptional ?? false}>
      {(control) => (
        <input
          type="text"
          dir="auto"
          {...rest}
          {...control}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

export function PasswordField({ label, hint, error, onInput, ...rest }: TextProps) {
  const [isShown, setShown] = useState(false);
  return (
    <Field label={label} hint={hint} error={error}>
      {(control) => (
        <div class="with-button">
          <input
            {...rest}
            {...control}
            type={isShown ? "text" : "password"}
            onInput={(event) => onInput(event.currentTarget.value)}
          />
          <IconButton
            icon={isShown ? EyeOff : Eye}
            label={isShown ? t().common.hide : t().signIn.showPassword}
            aria-pressed={isShown}
            onClick={() => setShown(!isShown)}
          />
        </div>
      )}
    </Field>
  );
}

type AreaProps =
  & Common
  & Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, "onInput" | "value" | "label">
  & { value: string; onInput: (value: string) => void };

// Grows with its text.
export function TextArea({ label, hint, error, isOptional, onInput, ...rest }: AreaProps) {
  return (
    <Field label={label} hint={hint} error={error} isOptional={isOptional ?? false}>
      {(control) => (
        <textarea
          dir="auto"
          rows={3}
          {...rest}
          {...control}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

export type Choice = readonly [value: string, label: string];

export function SelectField(
  { label, hint, error, value, choices, onChange, disabled }: Common & {
    value: string;
    choices: readonly Choice[];
    onChange: (value: string) => void;
    disabled?: boolean;
  },
) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(control) => (
        <select
          {...control}
          value={value}
          disabled={disabled}
          onChange={(event) => onChange(event.currentTarget.value)}
        >
          {choices.map(([key, text]) => (
            <option key={key} value={key} selected={key === value}>{text}</option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function NumberField(
  { value, onInput, ...rest }: Omit<TextProps, "value" | "onInput"> & {
    value: number | null;
    onInput: (value: number | null) => void;
  },
) {
  return (
    <TextField
      {...rest}
      type="number"
      inputMode="decimal"
      value={value === null ? "" : String(value)}
      onInput={(text) => onInput(text === "" ? null : Number(text))}
    />
  );
}

export function Switch(
  { label, hint, value, onChange, disabled }: {
    label: string;
    hint?: ComponentChildren;
    value: boolean;
    onChange: (value: boolean) => void;
    disabled?: boolean;
  },
) {
  const id = useId();
  return (
    <div class="switch-field">
      <input
        type="checkbox"
        role="switch"
        id={id}
        checked={value}
        disabled={disabled}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <label for={id}>{label}</label>
      {hint && <p class="hint" id={`${id}-hint`}>{hint}</p>}
    </div>
  );
}

export function Checkbox(
  { label, value, onChange }: {
    label: string;
    value: boolean;
    onChange: (value: boolean) => void;
  },
) {
  return (
    <label class="checkbox">
      <input
        type="checkbox"
        checked={value}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      {label}
    </label>
  );
}

// The search field of a screen; `/` goes to it.
export function SearchField(
  { value, onInput, label = t().common.search }: {
    value: string;
    onInput: (value: string) => void;
    label?: string;
  },
) {
  return (
    <div class="search-field">
      <Search aria-hidden="true" />
      <input
        type="search"
        dir="auto"
        value={value}
        aria-label={label}
        placeholder={label}
        data-search
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </div>
  );
}

// A choice in a bar of filters. The first choice stands for all.
export function Filter(
  { label, value, choices, all = t().common.all, onChange }: {
    label: string;
    value: string | undefined;
    choices: readonly Choice[];
    all?: string;
    onChange: (value: string | undefined) => void;
  },
) {
  return (
    <label class="filter">
      <span>{label}</span>
      <select
        value={value ?? ""}
        onChange={(event) => onChange(event.currentTarget.value || undefined)}
      >
        <option value="">{all}</option>
        {choices.map(([key, text]) => (
          <option key={key} value={key} selected={key === value}>{text}</option>
        ))}
      </select>
    </label>
  );
}
