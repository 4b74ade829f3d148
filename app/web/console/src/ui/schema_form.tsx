// A form that is generated from a JSON Schema. What has no control of its own is entered as JSON.
import { Plus, Trash2 } from "lucide-preact";
import { useRef } from "preact/hooks";

import { t } from "../texts";
import { Button, IconButton } from "./button";
import { NumberField, PasswordField, SelectField, Switch, TextArea, TextField } from "./field";
import { JsonField } from "./json_field";
import { type Fields, isObject, kindOf, own, resolve, type Schema, startOf } from "./schema";
import type { Validity } from "./validity";

interface Shared {
  root: Schema;
  // The messages of the server, by paths such as "input.address.0".
  errors: Record<string, string>;
  validity?: Validity | undefined;
  // The paths of texts that nobody may read over a shoulder.
  isSecret?: (path: string) => boolean;
  labels?: Record<string, string> | undefined;
}

interface PartProps {
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

export function SchemaForm(
  { schema, name, value, onChange, ...shared }: Omit<Shared, "root"> & {
    schema: Schema;
    // What errors call the value, such as "input".
    name: string;
    value: Fields;
    onChange: (value: Fields) => void;
  },
) {
  return (
    <Properties
      shared={{ ...shared, root: schema }}
      schema={resolve(schema, schema)}
      path={name}
      value={value}
      onChange={onChange}
      depth={0}
    />
  );
}

function Properties(
  { shared, schema, path, value, onChange, depth }: {
    shared: Shared;
    schema: Schema;
    path: string;
    value: unknown;
    onChange: (value: Fields) => void;
    depth: number;
  },
) {
  const latest = useRef(value);
  latest.current = value;
  const set = (name: string, part: unknown) => {
    const { [name]: _, ...others } = isObject(latest.current) ? latest.current : {};
    if (part === undefined) return onChange(others);
    // The order of the schema stays.
    const all: Fields = { ...others, [name]: part };
    const known = Object.keys(schema.properties ?? {});
    const names = [
      ...known,
      ...Object.keys(all).filter((key) => !known.includes(key)),
    ];
    onChange(Object.fromEntries(
      names.filter((key) => Object.hasOwn(all, key)).map((
        key,
      ) => [key, all[key]]),
    ));
  };
  return (
    <>
      {Object.entries(schema.properties ?? {}).map(([name, part]) => (
        <Part
          key={name}
          shared={shared}
          schema={resolve(part, shared.root)}
          name={name}
          path={`${path}.${name}`}
          value={own(value, name)}
          onChange={(next) => set(name, next)}
          isRequired={isRequired(schema, name)}
          isForced={isRequired(schema, name) && value !== undefined}
          depth={depth + 1}
        />
      ))}
    </>
  );
}

function isRequired({ required }: Schema, name: string): boolean {
  return Array.isArray(required) && required.includes(name);
}

function Part(props: PartProps) {
  const { shared, schema, path, value, onChange, isForced, depth } = props;
  const common = describe(props);
  switch (kindOf(schema, depth)) {
    case "choice":
      return <Choice {...props} />;
    case "text":
      return <Text {...props} />;
    case "number":
      return (
        <NumberField
          {...common}
          step="any"
          min={schema.minimum}
          max={schema.maximum}
          required={isForced}
          value={typeof value === "number" ? value : null}
          onInput={(next) => onChange(next ?? undefined)}
        />
      );
    case "switch":
      return (
        <Switch
          label={common.label}
          hint={common.hint}
          value={value === true}
          onChange={onChange}
        />
      );
    case "object":
      return (
        <fieldset class="group nested">
          <Legend {...common} />
          <Properties
            shared={shared}
            schema={schema}
            path={path}
            value={value}
            onChange={onChange}
            depth={depth}
          />
        </fieldset>
      );
    case "list":
      return <Items {...props} />;
    default:
      return (
        <JsonField
          {...common}
          name={path}
          value={value}
          onChange={onChange}
          validity={shared.validity}
        />
      );
  }
}

function describe({ shared, schema, name, path, isRequired }: PartProps) {
  return {
    label: shared.labels?.[name] ??
      (typeof schema.title === "string" ? schema.title : name),
    hint: typeof schema.description === "string" ? schema.description : undefined,
    error: shared.errors[path],
    isOptional: !isRequired,
  };
}

function Legend(
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

function Choice(props: PartProps) {
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

function Text(props: PartProps) {
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

function Items(props: PartProps) {
  const { shared, schema, path, value, onChange, depth } = props;
  const add = useRef<HTMLDivElement>(null);
  const items = Array.isArray(value) ? value : [];
  const common = describe(props);
  const item = resolve(schema.items, shared.root);
  const remove = (index: number) => {
    onChange(items.filter((_, other) => other !== index));
    add.current?.querySelector("button")?.focus();
  };
  return (
    <fieldset class="group nested">
      <Legend {...common} />
      {items.map((entry, index) => (
        <div key={index} class="item">
          <Part
            shared={shared}
            schema={item}
            name={String(index + 1)}
            path={`${path}.${index}`}
            value={entry}
            onChange={(next) =>
              onChange(
                items.map((
                  other,
                  position,
                ) => (position === index ? next ?? null : other)),
              )}
            isRequired
            isForced={false}
            depth={depth + 1}
          />
          <IconButton
            icon={Trash2}
            label={t().forms.remove(`${common.label} ${index + 1}`)}
            onClick={() => remove(index)}
          />
        </div>
      ))}
      <div ref={add}>
        <Button
          icon={Plus}
          onClick={() =>
            onChange([
              ...items,
              startOf(item, shared.root, depth + 1) ?? blank(item),
            ])}
        >
          {t().forms.addTo(common.label)}
        </Button>
      </div>
    </fieldset>
  );
}

function blank(schema: Schema): unknown {
  const empty: Record<string, unknown> = {
    text: "",
    switch: false,
    object: {},
    list: [],
  };
  return empty[kindOf(schema, 0)] ?? null;
}
