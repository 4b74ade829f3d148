// Fields that only knowledge needs.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { TextField } from "../../ui/field";

// Names that are separated by commas.
export function NamesField(
  { label, hint, value, onChange, error, isOptional }: {
    label: string;
    hint?: ComponentChildren;
    value: string[];
    onChange: (value: string[]) => void;
    error?: string | undefined;
    isOptional?: boolean;
  },
) {
  const [text, setText] = useState(() => value.join(", "));
  const emitted = useRef(value.join());
  useEffect(() => {
    // Somebody else has changed the names.
    if (value.join() === emitted.current) return;
    emitted.current = value.join();
    setText(value.join(", "));
  }, [value.join()]);
  return (
    <TextField
      label={label}
      hint={hint}
      value={text}
      error={error}
      isOptional={isOptional ?? false}
      onInput={(next) => {
        setText(next);
        const names = next.split(",").map((name) => name.trim()).filter(Boolean);
        emitted.current = names.join();
        onChange(names);
      }}
    />
  );
}

// Times in a form are those of the place where somebody sits.
export function toLocal(iso: string | null): string {
  if (!iso) return "";
  const time = new Date(iso);
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function fromLocal(text: string): string | null {
  return text ? new Date(text).toISOString() : null;
}
