// The link of a mail: its token, and what it leads to before anything is typed.
import { useLocation } from "preact-iso";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import { api } from "../../api/client";
import { Problem } from "../../api/problem";
import { t } from "../../texts";
import { Failure, Skeleton } from "../../ui/states";
import { AccountCard, type End, EndCard } from "./card";

// The token stays in the address for a reload, until it is used.
export function useToken(): [token: string, forget: () => void] {
  const { query, path, route } = useLocation();
  const [token] = useState(query.token ?? "");
  return [token, () => route(path, true)];
}

export type LinkState<T> = { end: End } | { link: T };

// Looks the token up, and shows the form for it or why there is none.
export function MailedLink<T>(
  { title, lookUp, children }: {
    title: string;
    lookUp: () => Promise<LinkState<T>>;
    children: (link: T) => ComponentChildren;
  },
) {
  const [state, setState] = useState<LinkState<T> | { error: unknown } | null>(null);
  const ask = () => {
    setState(null);
    lookUp().then(setState, (error: unknown) => setState({ error }));
  };
  useEffect(ask, []);
  if (state && "link" in state) return <>{children(state.link)}</>;
  if (state && "end" in state) return <EndCard end={state.end} />;
  return (
    <AccountCard title={title}>
      {state ? <Failure error={state.error} onRetry={ask} /> : <Skeleton rows={3} />}
    </AccountCard>
  );
}

export function toReset(): NonNullable<End["link"]> {
  return { to: "/forgot-password", label: t().accounts.getMail };
}

type Purpose = "verify_email" | "reset_password";

export async function lookUpLink(
  purpose: Purpose,
  token: string,
): Promise<LinkState<{ email: string }>> {
  const texts = t().accounts;
  const invalid: End = {
    title: texts.invalidTitle,
    text: texts.incomplete,
    ...(purpose === "reset_password" ? { link: toReset() } : {}),
  };
  if (!token) return { end: invalid };
  const link = await orNull(
    api.post("/auth/links/look-up", { body: { purpose, token } }, { isPublic: true }),
  );
  if (!link) return { end: invalid };
  return link.state === "open" ? { link } : { end: endOf(purpose, link.state) };
}

function endOf(purpose: Purpose, state: "used" | "expired"): End {
  const texts = t().accounts;
  if (purpose === "verify_email") {
    return state === "used"
      ? { title: texts.usedTitle, text: texts.verifiedBefore }
      : { title: texts.expiredTitle, text: texts.verifyByReset, link: toReset() };
  }
  return state === "used"
    ? { title: texts.endedTitle, text: texts.resetEnded, link: toReset() }
    : { title: texts.expiredTitle, text: texts.resetExpired, link: toReset() };
}

// Null where the server does not know the token.
export async function orNull<T>(request: Promise<T>): Promise<T | null> {
  try {
    return await request;
  } catch (error) {
    if (error instanceof Problem && [404, 422].includes(error.status)) return null;
    throw error;
  }
}
