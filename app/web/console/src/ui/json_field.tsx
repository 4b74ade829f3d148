// A value as JSON text. A text that is not JSON stays as it is, beside what is wrong with it.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { t } from "../texts";
import { TextArea } from "./field";
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
  rows?: number;
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
    rows,
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
    <TextArea
      label={label}
      hint={hint}
      error={problem ?? error}
      class="code-input"
      spellcheck={false}
      dir="ltr"
      value={text}
      onInput={input}
      rows={rows ?? 4}
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
