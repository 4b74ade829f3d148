// A form that is generated from a JSON Schema. What has no control of its own is entered as JSON.
import { Plus, Trash2 } from "lucide-preact";
import { useRef } from "preact/hooks";

import { t } from "../texts";
import { Button, IconButton } from "./button";
import { NumberField, Switch } from "./field";
import { JsonField } from "./json_field";
import {
  type Fields,
  isObject,
  isRequired,
  kindOf,
  own,
  resolve,
  type Schema,
  startOf,
} from "./schema";
import { Choice, describe, Legend, type PartProps, type Shared, Text } from "./schema_fields";

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
