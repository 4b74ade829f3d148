// The configuration of a tool, by the fields of its type.
import { useState } from "preact/hooks";

import { t } from "../../texts";
import { Button } from "../../ui/button";
import { CodeField } from "../../ui/code_field";
import { Checkbox, NumberField, SelectField, Switch, TextArea, TextField } from "../../ui/field";
import { JsonField } from "../../ui/json_field";
import { Section } from "../../ui/page";
import { PairsField } from "../../ui/pairs_field";
import type { Validity } from "../../ui/validity";
import { DiscoveredField } from "./discover";
import { EndpointsField } from "./endpoints_field";
import { FilesField } from "./files_field";
import { type Config, type FieldSpec, OPERATIONS, type ToolType, TYPES } from "./types";

interface Props {
  id: string | undefined;
  type: ToolType;
  config: Config;
  onChange: (config: Config) => void;
  errors: Record<string, string>;
  validity: Validity;
  isChanged: boolean;
  onDiscover: (input: { input_schema: object; description: string }) => void;
}

export function ConfigForm(props: Props) {
  const { type, config, onChange, errors, validity } = props;
  const [isJson, setJson] = useState(false);
  const texts = t().tools;
  return (
    <Section
      title={texts.config}
      about={texts.typeAbout[type]}
      actions={
        <Button kind="plain" onClick={() => setJson(!isJson)}>
          {isJson ? texts.asForm : texts.asJson}
        </Button>
      }
    >
      {isJson
        ? (
          <JsonField
            name="config"
            label={texts.config}
            value={config}
            onChange={(value) => onChange((value ?? {}) as Config)}
            validity={validity}
            error={errors.config}
            isObject
          />
        )
        : (
          <div class="stack">
            {TYPES[type].fields
              .filter(({ isShown }) => !isShown || isShown(config))
              .map((field) => <ConfigField key={field.key} {...props} field={field} />)}
            {errors.config && <p class="problem" role="alert">{errors.config}</p>}
          </div>
        )}
    </Section>
  );
}

function ConfigField(props: Props & { field: FieldSpec }) {
  const { field, config, onChange, errors, validity } = props;
  const { key, kind, choices = [], standard, placeholder, isOptional = false } = field;
  const texts = t().tools;
  const value = config[key] ?? standard;
  const set = (next: unknown) => {
    const { [key]: _, ...others } = config;
    onChange(next === undefined ? others : { ...config, [key]: next });
  };
  const path = `config.${key}`;
  const hints: Partial<Record<string, string>> = texts.fieldHints;
  const common = {
    name: path,
    label: texts.fields[key],
    hint: hints[key],
    error: errors[path],
    isOptional,
    validity,
  };
  const text = typeof value === "string" ? value : "";
  switch (kind) {
    case "number":
      return (
        <NumberField
          {...common}
          value={typeof value === "number" ? value : null}
          onInput={(next) => set(next ?? undefined)}
        />
      );
    case "choice":
      return (
        <SelectField
          {...common}
          value={text}
          choices={choices.map((choice) => [choice, labelOf(choice)])}
          onChange={set}
        />
      );
    case "switch":
      return <Switch {...common} value={value === true} onChange={set} />;
    case "code":
      return (
        <CodeField
          {...common}
          language={config.runtime === "javascript" ? "javascript" : "python"}
          value={text}
          onInput={set}
        />
      );
    case "lines":
      return (
        <TextArea
          {...common}
          dir="ltr"
          value={(Array.isArray(value) ? value : []).join("\n")}
          onInput={(next) => set(next ? next.split("\n") : undefined)}
        />
      );
    case "pairs":
      return (
        <PairsField
          {...common}
          value={(value ?? {}) as Record<string, string>}
          onChange={(next) => set(Object.keys(next).length ? next : undefined)}
          add={texts.addHeader}
        />
      );
    case "operations":
      return (
        <Operations
          {...common}
          value={value as string[] ?? []}
          onChange={set}
        />
      );
    case "files":
      return (
        <FilesField
          {...common}
          value={value as Record<string, string> ?? {}}
          onChange={set}
        />
      );
    case "endpoints":
      return (
        <EndpointsField
          {...common}
          errors={errors}
          value={value}
          onChange={set}
        />
      );
    case "discovered":
      return <DiscoveredField {...props} {...common} value={text} onInput={set} />;
    default:
      return (
        <TextField
          {...common}
          dir="ltr"
          placeholder={placeholder}
          value={text}
          onInput={set}
        />
      );
  }
}

function labelOf(choice: string): string {
  const labels: Partial<Record<string, string>> = t().tools.choices;
  return labels[choice] ?? choice;
}

function Operations(
  { label, hint, error, value, onChange }: {
    label: string;
    hint?: string | undefined;
    error?: string | undefined;
    value: string[];
    onChange: (value: string[]) => void;
  },
) {
  return (
    <fieldset class="group">
      <legend>{label}</legend>
      {hint && <p class="hint">{hint}</p>}
      <div class="choices">
        {OPERATIONS.map((name) => (
          <Checkbox
            key={name}
            label={name.toUpperCase()}
            value={value.includes(name)}
            onChange={(isOn) =>
              onChange(
                OPERATIONS.filter((other) => other === name ? isOn : value.includes(other)),
              )}
          />
        ))}
      </div>
      {error && <p class="problem">{error}</p>}
    </fieldset>
  );
}
