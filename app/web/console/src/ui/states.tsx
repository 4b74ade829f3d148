// What a screen shows instead of its content: nothing yet, loading, failed.
import type { LucideIcon } from "lucide-preact";
import type { ComponentChildren } from "preact";

import { toProblem } from "../api/problem";
import { t } from "../texts";
import { Button } from "./button";
import { CopyText } from "./copy";

export function Empty(
  { icon: Icon, title, children, action }: {
    icon?: LucideIcon;
    title: string;
    children?: ComponentChildren;
    action?: ComponentChildren;
  },
) {
  return (
    <div class="empty">
      {Icon && <Icon aria-hidden="true" class="empty-icon" />}
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {action && <div class="actions">{action}</div>}
    </div>
  );
}

const HINTS: Record<number, "network" | "notFound" | "forbidden"> = {
  0: "network",
  403: "forbidden",
  404: "notFound",
};

// Says what to do, and what to send to an administrator who asks.
export function Failure({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const problem = toProblem(error);
  const hint = HINTS[problem.status];
  return (
    <div class="failure" role="alert">
      <h2>{t().errors.title}</h2>
      <p dir="auto">{hint ? t().errors[hint] : problem.message}</p>
      {problem.requestId && (
        <p class="soft">
          {t().errors.requestId}: <CopyText text={problem.requestId} />
        </p>
      )}
      {onRetry && <Button onClick={onRetry}>{t().common.retry}</Button>}
    </div>
  );
}

// An error beside the control that caused it.
export function Problem({ error }: { error: unknown }) {
  if (!error) return null;
  const problem = toProblem(error);
  return (
    <p class="problem" role="alert" dir="auto">
      {problem.isNetwork ? t().errors.network : problem.message}
      {problem.requestId && (
        <span class="soft">{` ${t().errors.requestId}: ${problem.requestId}`}</span>
      )}
    </p>
  );
}

export function Skeleton({ rows = 6 }: { rows?: number }) {
  return (
    <div class="skeleton" aria-busy="true">
      <span class="hidden">{t().common.loading}</span>
      {Array.from({ length: rows }, (_, index) => <div key={index} class="bone" />)}
    </div>
  );
}

interface Query<T> {
  data: T | undefined;
  error: unknown;
  refetch: () => unknown;
}

// Shows what a query has answered, or its other looks.
export function Loaded<T>(
  { query, rows, children }: {
    query: Query<T>;
    rows?: number;
    children: (data: T) => ComponentChildren;
  },
) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.error) return <Failure error={query.error} onRetry={() => query.refetch()} />;
  return <Skeleton {...(rows === undefined ? {} : { rows })} />;
}
