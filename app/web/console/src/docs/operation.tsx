// The page of an operation.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

import { permissions, session } from "../api/session";
import { loadPart } from "../load_part";
import { t } from "../texts";
import { Snippet } from "../ui/content";
import { CopyText } from "../ui/copy";
import { Facts, Page, Section } from "../ui/page";
import { Badge } from "../ui/small";
import { Skeleton } from "../ui/states";
import { readStored, store } from "../ui/state";
import {
  type Answer,
  type ApiDocument,
  type Media,
  nameOf,
  type Operation,
  type Reference,
} from "./document";
import { Method } from "./navigation";
import { Inline, Prose } from "./prose";
import { exampleOf } from "./request";
import { FieldRow, IsAnswer, SchemaTree, typeOf } from "./schema";
import { type Dialect, DIALECTS, snippetOf } from "./snippets";
import { BASE_URL, pathOf } from "./state";

const PLACES = ["path", "query", "header"] as const;
const FIRST_ERROR = "400";
const KEY = "parley-docs-language";

export interface OperationProps {
  reference: Reference;
  operation: Operation;
}

export function OperationPage({ reference, operation }: OperationProps) {
  const { document } = reference;
  return (
    <Page title={operation.summary} isWide>
      <div class="docs-columns">
        <div class="stack docs-text">
          <p class="docs-endpoint">
            <Method name={operation.method} />
            <CopyText text={operation.path} />
            <a class="docs-jump" href="#examples">{t().docs.jump}</a>
          </p>
          {operation.description && <Prose text={operation.description} />}
          <Access operation={operation} />
          <ParametersOf document={document} operation={operation} />
          <RequestBody document={document} operation={operation} />
          <Answers document={document} operation={operation} />
          <ErrorsOf reference={reference} operation={operation} />
        </div>
        <div class="stack docs-side" id="examples">
          <Examples reference={reference} operation={operation} />
          <Section title={t().docs.tryIt}>
            <LazyTryIt reference={reference} operation={operation} />
          </Section>
        </div>
      </div>
    </Page>
  );
}

// What nobody uses who only reads.
function LazyTryIt(props: OperationProps) {
  const [Form, setForm] = useState<ComponentType<OperationProps> | null>(null);
  useEffect(() => {
    void loadPart(() => import("./try_it")).then((part) => setForm(() => part.default));
  }, []);
  return Form ? <Form {...props} /> : <Skeleton rows={2} />;
}

function Access({ operation: { schemes, permission } }: { operation: Operation }) {
  const texts = t().docs;
  const names = schemes.map((name) => texts.schemes[name] ?? name);
  const rows: Parameters<typeof Facts>[0]["rows"] = [
    [texts.access, names.length ? names.join(", ") : texts.isPublic],
  ];
  if (permission) rows.push([texts.permission, <code key="permission">{permission}</code>]);
  const lacks = permission && session.value && !permissions.value.has(permission);
  return (
    <>
      <Facts rows={rows} />
      {lacks && (
        <p class="note warn">
          <span>
            {texts.lacksPermission(roleName(session.value?.user.role ?? ""), permission)}
          </span>
        </p>
      )}
    </>
  );
}

function roleName(role: string): string {
  return (t().roles as Record<string, string>)[role] ?? role;
}

interface Props {
  document: ApiDocument;
  operation: Operation;
}

function ParametersOf({ document, operation }: Props) {
  if (!operation.parameters.length) return null;
  return (
    <Section title={t().docs.parameters}>
      {PLACES.map((place) => {
        const own = operation.parameters.filter((parameter) => parameter.in === place);
        return own.length > 0 && (
          <div key={place}>
            <h3>{t().docs.places[place]}</h3>
            <ul class="docs-fields">
              {own.map(({ name, schema, required, description }) => (
                <FieldRow
                  key={name}
                  name={name}
                  document={document}
                  schema={schema}
                  isRequired={required ?? false}
                  about={description}
                />
              ))}
            </ul>
          </div>
        );
      })}
    </Section>
  );
}

function RequestBody({ document, operation: { body } }: Props) {
  if (!body) return null;
  return (
    <Section title={t().docs.body}>
      <MediaView document={document} type={body.type} media={body.media} />
      {!body.isRequired && <p class="soft">{t().docs.optionalBody}</p>}
    </Section>
  );
}

function MediaView(
  { document, type, media }: { document: ApiDocument; type: string; media: Media },
) {
  const about = media.schema.$ref &&
    document.components.schemas[nameOf(media.schema.$ref)]?.description;
  const events = Object.entries(media["x-events"] ?? {});
  return (
    <div class="docs-media">
      <p class="hint">
        <code>{type}</code> {!events.length && typeOf(document, media.schema)}
      </p>
      {about && <Prose text={about} />}
      {events.length
        ? events.map(([name, schema]) => (
          <details key={name}>
            <summary>{t().docs.event(name)}</summary>
            <SchemaTree document={document} schema={schema} />
          </details>
        ))
        : <SchemaTree document={document} schema={media.schema} />}
    </div>
  );
}

function Answers({ document, operation }: Props) {
  const answers = operation.answers.filter(({ status }) => status < FIRST_ERROR);
  return (
    <Section title={t().docs.answers}>
      <IsAnswer.Provider value>
        {answers.map(({ status, answer }) => (
          <AnswerView key={status} document={document} status={status} answer={answer} />
        ))}
      </IsAnswer.Provider>
    </Section>
  );
}

function AnswerView(
  { document, status, answer }: { document: ApiDocument; status: string; answer: Answer },
) {
  const contents = Object.entries(answer.content ?? {});
  const headers = Object.entries(answer.headers ?? {});
  return (
    <div class="stack docs-answer">
      <h3>
        <Badge tone="good">{status}</Badge> {answer.description}
      </h3>
      {headers.map(([name, { description }]) => (
        <p key={name} class="hint">
          <code>{name}</code> <Inline text={description ?? ""} />
        </p>
      ))}
      {contents.map(([type, media]) => (
        <MediaView key={type} document={document} type={type} media={media} />
      ))}
      {!contents.length && status < "300" && <p class="soft">{t().docs.noContent}</p>}
      {contents.map(([type, media]) => <ExampleOf key={type} document={document} media={media} />)}
    </div>
  );
}

function ExampleOf({ document, media }: { document: ApiDocument; media: Media }) {
  const schema = media.schema.$ref && document.components.schemas[nameOf(media.schema.$ref)];
  const example = media.example ?? (schema ? schema.example : undefined);
  if (example === undefined) return null;
  const text = typeof example === "string" ? example : JSON.stringify(example, null, 2);
  return (
    <details>
      <summary>{t().docs.example}</summary>
      <Snippet text={text} label={t().docs.example} />
    </details>
  );
}

function ErrorsOf({ reference, operation }: OperationProps) {
  const errors = operation.answers.filter(({ status }) => status >= FIRST_ERROR);
  return (
    <Section title={t().docs.errorsOf}>
      <ul class="docs-statuses">
        {errors.map(({ status, answer }) => (
          <li key={status}>
            <Badge tone={status < "500" ? "warn" : "bad"}>{status}</Badge>
            <div>
              <p>{descriptionOf(reference.document, answer)}</p>
              <p class="docs-values">
                {operation.codes[status]?.map((code) => (
                  <a key={code} href={pathOf(`errors/${code}`)}>
                    <code>{code}</code>
                  </a>
                ))}
              </p>
            </div>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function descriptionOf(document: ApiDocument, answer: Answer): string {
  const found = answer.$ref ? document.components.responses[nameOf(answer.$ref)] : answer;
  return found?.description ?? "";
}

function Examples({ reference, operation }: OperationProps) {
  const [dialect, setDialect] = useState<Dialect>(readStored<Dialect>(KEY) ?? "curl");
  const example = exampleOf(reference, operation);
  const choose = (name: Dialect) => {
    setDialect(name);
    store(KEY, name);
  };
  return (
    <Section title={t().docs.request}>
      <div class="docs-dialects" role="group" aria-label={t().docs.language}>
        {(Object.keys(DIALECTS) as Dialect[]).map((name) => (
          <button
            key={name}
            type="button"
            aria-pressed={name === dialect}
            onClick={() => choose(name)}
          >
            {DIALECTS[name]}
          </button>
        ))}
      </div>
      <Snippet text={snippetOf(dialect, example, BASE_URL)} label={DIALECTS[dialect]} />
      {example.secret && <p class="hint">{t().docs.tokenHint(example.secret)}</p>}
    </Section>
  );
}
