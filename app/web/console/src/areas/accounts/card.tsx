// The card of screens that need no session, in the look of the sign-in.
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

import { Mark } from "../../shell/mark";
import { LinkButton } from "../../ui/button";
import { t } from "../../texts";

export interface End {
  title: string;
  text: string;
  // Where to go from here.
  link?: { to: string; label: string };
}

export function AccountCard(
  { title, about, children }: {
    title: string;
    about?: string;
    children?: ComponentChildren;
  },
) {
  useEffect(() => {
    document.title = `${title} · Parley`;
  }, [title]);
  return (
    <main class="sign-in" id="main">
      <div class="card">
        <Mark />
        <h1 dir="auto">{title}</h1>
        {about && <p class="about" dir="auto">{about}</p>}
        {children}
      </div>
    </main>
  );
}

// What remains when there is nothing to fill in: the link does not work, or all is done.
export function EndCard({ end }: { end: End }) {
  const link = end.link ?? { to: "/sign-in", label: t().signIn.submit };
  return (
    <AccountCard title={end.title}>
      <p class="about" role="status" dir="auto">{end.text}</p>
      <LinkButton to={link.to} kind="primary">{link.label}</LinkButton>
    </AccountCard>
  );
}
