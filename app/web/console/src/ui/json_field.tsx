// A value as JSON text. A text that is not JSON stays as it is, beside what is wrong with it.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { t } from "../texts";
import { CodeField } from "./code_field";
import { useReport, type Validity } from "./validity";

interface JsonFieldProps {
  // Names the field in the form.
  name: string;
  label: string;
  hint?: ComponentChildren;
  error?: string | undefined;
  // undefined: the field is empty.
  value: unknown;
  onChange: (value: unknown) => void;
  validity?: Validity | undefined;
  isOptional?: boolean;
  // Only an object can be entered.
  isObject?: boolean;
}

export function JsonField(props: JsonFieldProps) {
  const {
    name,
    label,
    hint,
    error,
    value,
    onChange,
    validity,
    isOptional,
  } = props;
  const [text, setText] = useState(() => show(value));
  const emitted = useRef(JSON.stringify(value));
  const problem = findProblem(text, props.isObject ?? false);
  useReport(validity, name, !problem);
  useEffect(() => {
    // Somebody else has changed the value.
    if (JSON.stringify(value) === emitted.current) return;
    emitted.current = JSON.stringify(value);
    setText(show(value));
  }, [value]);
  const input = (next: string) => {
    setText(next);
    if (findProblem(next, props.isObject ?? false)) return;
    const parsed = next.trim() ? JSON.parse(next) : undefined;
    emitted.current = JSON.stringify(parsed);
    onChange(parsed);
  };
  return (
    <CodeField
      label={label}
      hint={hint}
      error={problem ?? error}
      language="json"
      value={text}
      onInput={input}
      isOptional={isOptional ?? false}
    />
  );
}

function show(value: unknown): string {
  return value === undefined ? "" : JSON.stringify(value, null, 2);
}

function findProblem(text: string, isObject: boolean): string | undefined {
  if (!text.trim()) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    const fits = !isObject ||
      (typeof value === "object" && value !== null && !Array.isArray(value));
    return fits ? undefined : t().forms.notAnObject;
  } catch (error) {
    return t().forms.notJson(
      error instanceof Error ? error.message : String(error),
    );
  }
}
