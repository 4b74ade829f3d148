// What differs between two states of a record, side by side.
import { diffLines } from "./text_diff";

export interface Change {
  field: string;
  before: unknown;
  after: unknown;
}

export function changesBetween(before: object, after: object): Change[] {
  const old: Record<string, unknown> = { ...before };
  const now: Record<string, unknown> = { ...after };
  return [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .filter((field) => JSON.stringify(old[field]) !== JSON.stringify(now[field]))
    .map((field) => ({ field, before: old[field], after: now[field] }));
}

function show(value: unknown): string {
  if (value === undefined || value === null) return "–";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

export function Diff(
  { changes, labels, left, right }: {
    changes: Change[];
    // The names of fields, as the form shows them.
    labels?: Record<string, string>;
    left: string;
    right: string;
  },
) {
  return (
    <div class="diff">
      <div class="diff-head" aria-hidden="true">
        <span>{left}</span>
        <span>{right}</span>
      </div>
      {changes.map(({ field, before, after }) => (
        <section key={field}>
          <h3>{labels?.[field] ?? field}</h3>
          <Sides before={show(before)} after={show(after)} left={left} right={right} />
        </section>
      ))}
    </div>
  );
}

function Sides(
  { before, after, left, right }: { before: string; after: string; left: string; right: string },
) {
  const lines = diffLines(before, after);
  return (
    <div class="diff-sides">
      <pre aria-label={left} tabIndex={0} dir="auto">
        {lines.filter(({ kind }) => kind !== "added").map(({ kind, text }, index) =>
          kind === "removed" ? <del key={index}>{`${text}\n`}</del> : `${text}\n`
        )}
      </pre>
      <pre aria-label={right} tabIndex={0} dir="auto">
        {lines.filter(({ kind }) => kind !== "removed").map(({ kind, text }, index) =>
          kind === "added" ? <ins key={index}>{`${text}\n`}</ins> : `${text}\n`
        )}
      </pre>
    </div>
  );
}
