// A schema as a tree of fields, of which each level opens at a click.
import { createContext } from "preact";
import { useContext, useState } from "preact/hooks";

import { t } from "../texts";
import { type ApiDocument, branchesOf, nameOf, resolve, type Schema } from "./document";
import { Inline } from "./prose";

interface Props {
  document: ApiDocument;
  schema: Schema;
}

// A part of a value that has fields of its own.
interface Level {
  name: string;
  schema: Schema;
}

// An answer has all its fields; of what a caller sends, some are required.
export const IsAnswer = createContext(false);

export function SchemaTree({ document, schema }: Props) {
  const found = resolve(document, schema);
  if (found.properties) return <Fields document={document} schema={found} />;
  return (
    <div class="docs-fields">
      <p>
        <TypeName document={document} schema={schema} />
      </p>
      <Levels document={document} schema={schema} isOpen />
    </div>
  );
}

function Fields({ document, schema }: Props) {
  const required = new Set(useContext(IsAnswer) ? [] : schema.required);
  return (
    <ul class="docs-fields">
      {Object.entries(schema.properties ?? {}).map(([name, field]) => (
        <FieldRow
          key={name}
          name={name}
          document={document}
          schema={field}
          isRequired={required.has(name)}
        />
      ))}
    </ul>
  );
}

export function FieldRow(
  { name, document, schema, isRequired, about }: Props & {
    name: string;
    isRequired: boolean;
    about?: string | undefined;
  },
) {
  const text = about ?? schema.description ??
    branchesOf(schema).map(({ description }) => description).find(Boolean);
  return (
    <li>
      <p class="docs-field">
        <code class="docs-name">{name}</code>
        <span class="hint">
          <TypeName document={document} schema={schema} />
        </span>
        {isRequired && <span class="docs-required">{t().docs.required}</span>}
      </p>
      {text && (
        <p>
          <Inline text={text} />
        </p>
      )}
      <Limits document={document} schema={schema} />
      <Levels document={document} schema={schema} />
    </li>
  );
}

function TypeName({ document, schema }: Props) {
  return <>{typeOf(document, schema)}</>;
}

export function typeOf(document: ApiDocument, schema: Schema, depth = 0): string {
  const texts = t().docs;
  if (schema.$ref) {
    const found = resolve(document, schema);
    return found.properties || depth > 3 ? nameOf(schema.$ref) : typeOf(document, found, depth + 1);
  }
  const branches = schema.anyOf ?? schema.oneOf;
  if (branches) {
    return [...new Set(branches.map((branch) => typeOf(document, branch, depth + 1)))]
      .join(texts.or);
  }
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") {
    return texts.listOf(typeOf(document, schema.items ?? {}, depth + 1));
  }
  if (schema.type === "object" && typeof schema.additionalProperties === "object") {
    const values = schema.additionalProperties;
    if (Object.keys(values).length) return texts.mapOf(typeOf(document, values, depth + 1));
  }
  const type = Array.isArray(schema.type) ? schema.type.join(texts.or) : schema.type;
  if (!type) return schema.enum ? "string" : texts.any;
  return schema.format ? `${type} (${schema.format})` : type;
}

function Limits({ document, schema }: Props) {
  const parts = branchesOf(schema).map((branch) => resolve(document, branch));
  const values = parts.flatMap((part) => part.enum ?? []);
  const limits = [
    ...new Set(parts.flatMap(limitsOf)),
    ...(schema.default === undefined || schema.default === null
      ? []
      : [t().docs.defaultValue(JSON.stringify(schema.default))]),
  ];
  if (!values.length && !limits.length) return null;
  return (
    <p class="hint">
      {values.length > 0 && (
        <span class="docs-values">
          {t().docs.values} {values.map((value) => (
            <code key={String(value)}>
              {typeof value === "string" ? value : JSON.stringify(value)}
            </code>
          ))}
        </span>
      )}
      {limits.join(" · ")}
    </p>
  );
}

function limitsOf(schema: Schema): string[] {
  const texts = t().docs;
  const { minLength, maxLength, minItems, maxItems, pattern } = schema;
  const least = schema.minimum ?? schema.exclusiveMinimum;
  const most = schema.maximum ?? schema.exclusiveMaximum;
  return [
    least === undefined ? "" : texts.atLeast(least),
    most === undefined ? "" : texts.atMost(most),
    minLength || maxLength !== undefined ? texts.chars(minLength ?? 0, maxLength) : "",
    minItems || maxItems !== undefined ? texts.items(minItems ?? 0, maxItems) : "",
    // Longer ones only repeat in signs what the description says.
    pattern && pattern.length <= 40 && pattern !== "\\S" ? `${texts.pattern} ${pattern}` : "",
  ].filter(Boolean);
}

function Levels({ document, schema, isOpen = false }: Props & { isOpen?: boolean }) {
  return (
    <>
      {listLevels(document, schema).map((level, index) => (
        <LevelView
          key={index}
          document={document}
          level={level}
          isOpen={isOpen && index === 0}
        />
      ))}
    </>
  );
}

function LevelView(
  { document, level, isOpen }: { document: ApiDocument; level: Level; isOpen: boolean },
) {
  const [isShown, setShown] = useState(isOpen);
  return (
    <details open={isShown} onToggle={(event) => setShown(event.currentTarget.open)}>
      <summary>{t().docs.fieldsOf(level.name || t().docs.ofObject)}</summary>
      {isShown && <Fields document={document} schema={level.schema} />}
    </details>
  );
}

// The objects that a value may be or contain, by their names.
function listLevels(document: ApiDocument, schema: Schema, depth = 0): Level[] {
  const found = resolve(document, schema);
  const name = schema.$ref ? nameOf(schema.$ref) : "";
  if (depth > 6) return [];
  if (found.properties) return [{ name, schema: found }];
  const inner = [
    ...(found.anyOf ?? found.oneOf ?? []),
    ...(found.items ? [found.items] : []),
    ...(typeof found.additionalProperties === "object" ? [found.additionalProperties] : []),
  ];
  return inner.flatMap((part) => listLevels(document, part, depth + 1));
}
