// The endpoints of a REST API: one fold each.
import { Plus, Trash2 } from "lucide-preact";
import { useState } from "preact/hooks";

import { t } from "../../texts";
import { Button } from "../../ui/button";
import { SelectField, TextField } from "../../ui/field";
import { JsonField } from "../../ui/json_field";
import { PairsField } from "../../ui/pairs_field";
import { useRows } from "../../ui/rows";
import { useReport, type Validity } from "../../ui/validity";

interface Endpoint {
  method: string;
  path: string;
  default_params?: Record<string, unknown>;
  default_headers?: Record<string, string>;
}

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const OPEN_BELOW = 3;

export function EndpointsField(
  { name, label, hint, error, errors, value, onChange, validity }: {
    name: string;
    label: string;
    hint?: string | undefined;
    error?: string | undefined;
    errors: Record<string, string>;
    value: unknown;
    onChange: (value: unknown) => void;
    validity: Validity;
  },
) {
  const table = useRows((value ?? {}) as Record<string, Endpoint>, onChange);
  const [open, setOpen] = useState<ReadonlySet<number>>(
    new Set(
      table.rows.length < OPEN_BELOW ? table.rows.map(({ id }) => id) : [],
    ),
  );
  useReport(validity, name, !table.hasDouble);
  const texts = t().tools;
  const add = () => {
    const id = table.add("", { method: "GET", path: "/" });
    setOpen(new Set([...open, id]));
  };
  return (
    <fieldset class="group">
      <legend>{label}</legend>
      {hint && <p class="hint">{hint}</p>}
      {table.rows.map(({ id, key, value: endpoint }) => (
        <details
          key={id}
          class="fold"
          open={open.has(id)}
          onToggle={(event) => {
            const next = new Set(open);
            if (event.currentTarget.open) next.add(id);
            else next.delete(id);
            if (next.size !== open.size) setOpen(next);
          }}
        >
          <summary dir="auto">
            <code>{`${endpoint.method} ${endpoint.path}`}</code> {key}
          </summary>
          {open.has(id) && (
            <EndpointForm
              name={key}
              nameError={table.isDouble(key)
                ? t().forms.double
                : key
                ? undefined
                : t().common.required}
              path={`${name}.${key}`}
              endpoint={endpoint}
              errors={errors}
              validity={validity}
              onName={(next) => table.set(id, { key: next })}
              onChange={(next) => table.set(id, { value: next })}
              onRemove={() => table.remove(id)}
            />
          )}
        </details>
      ))}
      {error && <p class="problem" dir="auto">{error}</p>}
      <div>
        <Button icon={Plus} onClick={add}>{texts.addEndpoint}</Button>
      </div>
    </fieldset>
  );
}

function EndpointForm(
  {
    name,
    nameError,
    path,
    endpoint,
    errors,
    validity,
    onName,
    onChange,
    onRemove,
  }: {
    name: string;
    nameError: string | undefined;
    path: string;
    endpoint: Endpoint;
    errors: Record<string, string>;
    validity: Validity;
    onName: (name: string) => void;
    onChange: (endpoint: Endpoint) => void;
    onRemove: () => void;
  },
) {
  const texts = t().tools;
  const set = (changes: Partial<Endpoint>) => onChange({ ...endpoint, ...changes });
  return (
    <div class="stack">
      <div class="columns">
        <TextField
          label={t().common.name}
          hint={texts.endpointName}
          error={nameError}
          value={name}
          onInput={onName}
          maxLength={100}
        />
        <SelectField
          label={texts.fields.method}
          value={endpoint.method}
          choices={METHODS.map((method) => [method, method])}
          onChange={(method) => set({ method })}
        />
      </div>
      <TextField
        label={texts.path}
        hint={texts.pathHint}
        error={errors[`${path}.path`]}
        dir="ltr"
        value={endpoint.path}
        onInput={(next) => set({ path: next })}
      />
      <JsonField
        name={`${path}.default_params`}
        label={texts.defaultParams}
        error={errors[`${path}.default_params`]}
        value={endpoint.default_params}
        onChange={(next) => set({ default_params: (next ?? {}) as Record<string, unknown> })}
        validity={validity}
        isObject
        isOptional
      />
      <PairsField
        name={`${path}.default_headers`}
        label={texts.fields.headers}
        value={endpoint.default_headers ?? {}}
        onChange={(next) => set({ default_headers: next })}
        validity={validity}
        add={texts.addHeader}
      />
      <div>
        <Button kind="plain" icon={Trash2} onClick={onRemove}>
          {texts.removeEndpoint}
        </Button>
      </div>
    </div>
  );
}
