// Names and texts, such as headers.
import { Plus, Trash2 } from "lucide-preact";
import type { ComponentChildren } from "preact";

import { t } from "../texts";
import { Button, IconButton } from "./button";
import { useRows } from "./rows";
import { useReport, type Validity } from "./validity";

export function PairsField(
  { name, label, hint, error, value, onChange, validity, add, isSecret }: {
    name: string;
    label: string;
    hint?: ComponentChildren;
    error?: string | undefined;
    value: Record<string, string>;
    onChange: (value: Record<string, string>) => void;
    validity?: Validity | undefined;
    // The text of the button that adds a row.
    add?: string;
    isSecret?: boolean;
  },
) {
  const table = useRows(value, onChange);
  useReport(validity, name, !table.hasDouble);
  const texts = t().forms;
  return (
    <fieldset class="group">
      <legend>{label}</legend>
      {hint && <p class="hint">{hint}</p>}
      {table.rows.map(({ id, key, value }) => (
        <div key={id} class="pair">
          <input
            dir="auto"
            value={key}
            placeholder={t().common.name}
            aria-label={`${label}: ${t().common.name}`}
            aria-invalid={table.isDouble(key) || undefined}
            onInput={(event) => table.set(id, { key: event.currentTarget.value })}
          />
          <input
            dir="auto"
            type={isSecret ? "password" : "text"}
            autocomplete={isSecret ? "new-password" : "off"}
            value={value}
            placeholder={texts.value}
            aria-label={`${key || label}: ${texts.value}`}
            onInput={(event) => table.set(id, { value: event.currentTarget.value })}
          />
          <IconButton
            icon={Trash2}
            label={texts.remove(key)}
            onClick={() => table.remove(id)}
          />
        </div>
      ))}
      {table.hasDouble && <p class="problem">{texts.double}</p>}
      {error && <p class="problem" dir="auto">{error}</p>}
      <div>
        <Button icon={Plus} onClick={() => table.add("", "")}>
          {add ?? texts.add}
        </Button>
      </div>
    </fieldset>
  );
}
