// A form that sends the operation with the session of the console.
import { useEffect, useRef, useState } from "preact/hooks";

import { session } from "../api/session";
import { href } from "../base";
import { t } from "../texts";
import { Button } from "../ui/button";
import { Confirm } from "../ui/dialog";
import { Field, PasswordField, SelectField, TextArea, TextField } from "../ui/field";
import { Problem } from "../ui/states";
import {
  branchesOf,
  isFile,
  type Operation,
  type Reference,
  resolve,
  type Schema,
} from "./document";
import { exampleOf, sampleOf } from "./request";
import { ResponseView } from "./response";
import { type Received, sendRequest, takesKey, takesSession, type Values } from "./send";

interface Props {
  reference: Reference;
  operation: Operation;
}

export default function TryIt(props: Props) {
  const { operation } = props;
  if (session.value === undefined) return null;
  const isOpen = !operation.schemes.length || takesKey(operation);
  if (!isOpen && !session.value) {
    return (
      <div class="card stack">
        <p>{t().docs.trySignedOut}</p>
        <p>
          <a class="button primary" href={href("/sign-in", { next: location.pathname })}>
            {t().docs.signIn}
          </a>
        </p>
      </div>
    );
  }
  return <RequestForm {...props} />;
}

function RequestForm({ reference, operation }: Props) {
  const [values, setValues] = useState(() => startOf(reference, operation));
  const [asks, setAsks] = useState(false);
  const [isChecked, setChecked] = useState(false);
  const [sending, received, error, send, stop] = useSending(operation, values);
  const change = (changes: Partial<Values>) => setValues((now) => ({ ...now, ...changes }));
  const submit = (event: Event) => {
    event.preventDefault();
    setChecked(true);
    if (listMissing(operation, values).length) return;
    if (isDeletion(operation)) setAsks(true);
    else void send();
  };
  return (
    <form class="card stack docs-try" onSubmit={submit} noValidate>
      <p class="soft">{aboutOf(operation)}</p>
      <Parameters
        reference={reference}
        operation={operation}
        values={values}
        change={change}
        missing={isChecked ? listMissing(operation, values) : []}
      />
      {takesKey(operation) && (
        <PasswordField
          label={t().docs.key}
          hint={t().docs.keyHint}
          value={values.key}
          autocomplete="off"
          onInput={(key) => change({ key })}
        />
      )}
      <BodyFields
        reference={reference}
        operation={operation}
        values={values}
        change={change}
      />
      <div class="row">
        <Button kind="primary" type="submit" busy={sending}>{t().docs.send}</Button>
        {sending && <Button onClick={stop}>{t().docs.stop}</Button>}
        {sending && !received && <span class="soft" role="status">{t().docs.sending}</span>}
      </div>
      <Problem error={error} />
      {received && <ResponseView received={received} isRunning={sending} />}
      {asks && (
        <Confirm
          title={t().docs.confirmTitle}
          action={t().docs.confirm}
          onClose={() => setAsks(false)}
          onConfirm={() => {
            setAsks(false);
            void send();
          }}
        >
          <p>{t().docs.confirmAbout}</p>
          <p>
            <code>{operation.method} {operation.path}</code>
          </p>
        </Confirm>
      )}
    </form>
  );
}

function aboutOf(operation: Operation): string {
  if (takesKey(operation)) return t().docs.tryKey;
  return takesSession(operation) && session.value
    ? t().docs.tryAbout(session.value.user.email)
    : t().docs.tryPublic;
}

function isDeletion({ method, id }: Operation): boolean {
  return method === "DELETE" || /^(?:delete|remove|revoke|purge|clear)_/.test(id);
}

function useSending(operation: Operation, values: Values) {
  const [isSending, setSending] = useState(false);
  const [received, setReceived] = useState<Received | null>(null);
  const [error, setError] = useState<unknown>(null);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);
  const send = async () => {
    const controller = new AbortController();
    abort.current = controller;
    setSending(true);
    setReceived(null);
    setError(null);
    try {
      await sendRequest(operation, values, controller.signal, setReceived);
    } catch (problem) {
      // What has arrived before the user stopped it stays.
      if (!controller.signal.aborted) setError(problem);
    }
    setSending(false);
    setReceived((last) => last && { ...last, isDone: true });
  };
  return [isSending, received, error, send, () => abort.current?.abort()] as const;
}

// Required parameters have the values of the example, so that the names of others are not sent.
function startOf(reference: Reference, operation: Operation): Values {
  const { body } = exampleOf(reference, operation);
  const values: Values = {
    path: {},
    query: {},
    header: {},
    json: body.kind === "json" ? JSON.stringify(body.value, null, 2) : "",
    texts: {},
    files: {},
    key: "",
  };
  for (const parameter of operation.parameters) {
    const isSet = parameter.required && (parameter.in !== "path" || parameter.schema.enum);
    values[parameter.in][parameter.name] = isSet ? sampleOf(reference, operation, parameter) : "";
  }
  return values;
}

function listMissing(operation: Operation, values: Values): string[] {
  return operation.parameters.filter((parameter) =>
    parameter.required && !values[parameter.in][parameter.name]
  ).map(({ name }) => name);
}

interface FieldsProps extends Props {
  values: Values;
  change: (changes: Partial<Values>) => void;
}

function Parameters(
  { reference, operation, values, change, missing }: FieldsProps & { missing: string[] },
) {
  return (
    <>
      {operation.parameters.map((parameter) => {
        const { name, in: place, schema, required } = parameter;
        const common = {
          label: name,
          error: missing.includes(name) ? t().docs.fillIn : undefined,
        };
        const set = (value: string) => change({ [place]: { ...values[place], [name]: value } });
        const value = values[place][name] ?? "";
        if (schema.enum) {
          const choices = schema.enum.map((item) => [String(item), String(item)] as const);
          return (
            <SelectField
              key={name}
              {...common}
              value={value}
              choices={required ? choices : [["", "–"], ...choices]}
              onChange={set}
            />
          );
        }
        return (
          <TextField
            key={name}
            {...common}
            isOptional={!required}
            placeholder={place === "path" || schema.default !== undefined
              ? String(schema.default ?? sampleOf(reference, operation, parameter))
              : ""}
            value={value}
            onInput={set}
          />
        );
      })}
    </>
  );
}

function BodyFields({ reference, operation, values, change }: FieldsProps) {
  const { body } = operation;
  if (!body) return null;
  if (body.type !== "multipart/form-data") {
    return (
      <TextArea
        label={t().docs.json}
        class="docs-json"
        dir="ltr"
        spellcheck={false}
        value={values.json}
        onInput={(json) => change({ json })}
      />
    );
  }
  const schema = resolve(reference.document, body.media.schema);
  return (
    <>
      {Object.entries(schema.properties ?? {}).map(([name, field]) => (
        <FormField
          key={name}
          name={name}
          schema={field}
          isFile={isFile(reference.document, field)}
          isRequired={schema.required?.includes(name) ?? false}
          values={values}
          change={change}
        />
      ))}
    </>
  );
}

function FormField(
  { name, schema, isFile: hasFile, isRequired, values, change }: {
    name: string;
    schema: Schema;
    isFile: boolean;
    isRequired: boolean;
    values: Values;
    change: (changes: Partial<Values>) => void;
  },
) {
  if (!hasFile) {
    return (
      <TextField
        label={name}
        isOptional={!isRequired}
        value={values.texts[name] ?? ""}
        onInput={(text) => change({ texts: { ...values.texts, [name]: text } })}
      />
    );
  }
  return (
    <Field label={name} isOptional={!isRequired}>
      {(control) => (
        <input
          type="file"
          {...control}
          multiple={branchesOf(schema).some(({ type }) => type === "array")}
          onChange={(event) =>
            change({
              files: { ...values.files, [name]: [...event.currentTarget.files ?? []] },
            })}
        />
      )}
    </Field>
  );
}
