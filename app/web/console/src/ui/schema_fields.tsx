// The controls of a form that is generated from a JSON Schema.
import { t } from "../texts";
import { PasswordField, SelectField, TextArea, TextField } from "./field";
import type { Schema } from "./schema";
import type { Validity } from "./validity";

export interface Shared {
  root: Schema;
  // The messages of the server, by paths such as "input.address.0".
  errors: Record<string, string>;
  validity?: Validity | undefined;
  // The paths of texts that nobody may read over a shoulder.
  isSecret?: (path: string) => boolean;
  labels?: Record<string, string> | undefined;
}

export interface PartProps {
  shared: Shared;
  schema: Schema;
  name: string;
  path: string;
  value: unknown;
  onChange: (value: unknown) => void;
  isRequired: boolean;
  // The browser insists on a value: it is required in an object that is there.
  isForced: boolean;
  depth: number;
}

export function describe({ shared, schema, name, path, isRequired }: PartProps) {
  return {
    label: shared.labels?.[name] ??
      (typeof schema.title === "string" ? schema.title : name),
    hint: typeof schema.description === "string" ? schema.description : undefined,
    error: shared.errors[path],
    isOptional: !isRequired,
  };
}

export function Legend(
  { label, hint, error, isOptional }: ReturnType<typeof describe>,
) {
  return (
    <>
      <legend dir="auto">
        {label}
        {isOptional && <span class="soft">{` (${t().common.optional})`}</span>}
      </legend>
      {hint && <p class="hint" dir="auto">{hint}</p>}
      {error && <p class="problem" dir="auto">{error}</p>}
    </>
  );
}

export function Choice(props: PartProps) {
  const { schema, value, onChange, isRequired } = props;
  const { isOptional, ...common } = describe(props);
  const values = schema.enum ?? [];
  const index = values.findIndex((item) => JSON.stringify(item) === JSON.stringify(value));
  const none: [string, string][] = isRequired && index >= 0 ? [] : [["", "–"]];
  return (
    <SelectField
      {...common}
      label={isOptional ? `${common.label} (${t().common.optional})` : common.label}
      value={index < 0 ? "" : String(index)}
      choices={[
        ...none,
        ...values.map((item, position): [string, string] => [
          String(position),
          typeof item === "string" ? item : JSON.stringify(item),
        ]),
      ]}
      onChange={(key) => onChange(key === "" ? undefined : values[Number(key)])}
    />
  );
}

const INPUT_TYPES: Record<string, string> = {
  date: "date",
  time: "time",
  email: "email",
  uri: "url",
};
const LONG = 500;

export function Text(props: PartProps) {
  const { shared, schema, path, value, onChange, isRequired, isForced } = props;
  const text = typeof value === "string" ? value : "";
  const input = (next: string) => onChange(next === "" && !isRequired ? undefined : next);
  const common = {
    ...describe(props),
    value: text,
    onInput: input,
    required: isForced,
  };
  if (shared.isSecret?.(path)) {
    return <PasswordField {...common} autocomplete="new-password" />;
  }
  if ((schema.maxLength ?? 0) > LONG && !schema.format) {
    return <TextArea {...common} rows={2} />;
  }
  return <TextField {...common} type={INPUT_TYPES[schema.format ?? ""] ?? "text"} />;
}
