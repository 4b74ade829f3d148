// All error codes: what they mean, what to do, and which operations answer with them.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { t } from "../texts";
import { Page, Section } from "../ui/page";
import type { ErrorCode, Operation, Reference } from "./document";
import { Method } from "./navigation";
import { Inline } from "./prose";
import { pathOf } from "./state";

const NAMES: Record<number, string> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  409: "Conflict",
  412: "Precondition Failed",
  413: "Content Too Large",
  414: "URI Too Long",
  415: "Unsupported Media Type",
  416: "Range Not Satisfiable",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
};

export function Errors({ reference, code }: { reference: Reference; code: string | undefined }) {
  const statuses = [...new Set(reference.codes.flatMap((error) => error.statuses))];
  const operations = useMemo(() => groupByCode(reference), [reference]);
  const isKnown = !code || reference.codes.some((error) => error.code === code);
  return (
    <Page title={t().docs.errors} about={t().docs.errorsAbout}>
      {!isKnown && <p class="note warn" role="alert">{t().docs.missingCode(code)}</p>}
      {statuses.sort((one, two) => one - two).map((status) => (
        <Section key={status} title={`${status} ${NAMES[status] ?? ""}`}>
          <div class="card docs-errors">
            {reference.codes.filter((error) =>
              error.statuses[0] === status
            ).map((error) => (
              <Code
                key={error.code}
                error={error}
                operations={operations.get(error.code) ?? []}
                isChosen={error.code === code}
              />
            ))}
          </div>
        </Section>
      ))}
    </Page>
  );
}

function groupByCode(reference: Reference): Map<string, Operation[]> {
  const groups = new Map<string, Operation[]>();
  for (const operation of reference.operations.values()) {
    for (const code of new Set(Object.values(operation.codes).flat())) {
      groups.set(code, [...groups.get(code) ?? [], operation]);
    }
  }
  return groups;
}

function Code(
  { error, operations, isChosen }: {
    error: ErrorCode;
    operations: Operation[];
    isChosen: boolean;
  },
) {
  const element = useRef<HTMLElement>(null);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    if (isChosen) element.current?.scrollIntoView({ block: "center" });
  }, [isChosen]);
  return (
    <section ref={element} class="docs-error" aria-current={isChosen ? "true" : undefined}>
      <h3>
        <a href={pathOf(`errors/${error.code}`)}>
          <code>{error.code}</code>
        </a>
        {error.statuses.length > 1 && <span class="hint">{error.statuses.join(", ")}</span>}
      </h3>
      <p>
        <Inline text={error.meaning} />
      </p>
      <p class="soft">
        <Inline text={error.action} />
      </p>
      {operations.length
        ? (
          <details onToggle={(event) => setOpen(event.currentTarget.open)}>
            <summary>{t().docs.answeredBy(operations.length)}</summary>
            {isOpen && (
              <ul class="docs-operations">
                {operations.map(({ id, address, method, summary }) => (
                  <li key={id}>
                    <Method name={method} /> <a href={pathOf(address)}>{summary}</a>
                  </li>
                ))}
              </ul>
            )}
          </details>
        )
        : <p class="hint">{t().docs.answeredByAny}</p>}
    </section>
  );
}
