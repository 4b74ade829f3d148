// The frame of a screen: its title, its actions and the way to it.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

import { href } from "../base";

export interface Crumb {
  label: string;
  to: string;
}

export const crumbs = signal<Crumb[]>([]);
let isFirst = true;

interface PageProps {
  title: string;
  // The screens above this one.
  parents?: Crumb[];
  // What stands beside the title, such as a state.
  beside?: ComponentChildren;
  about?: ComponentChildren;
  actions?: ComponentChildren;
  // Uses the whole width of the window.
  isWide?: boolean;
  children: ComponentChildren;
}

export function Page(
  { title, parents = [], beside, about, actions, isWide, children }: PageProps,
) {
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => {
    // The next screen is announced, and the keyboard goes on from its start. Later, the focus could
    // be elsewhere already.
    if (!isFirst) heading.current?.focus({ preventScroll: true });
    isFirst = false;
  }, []);
  useEffect(() => {
    document.title = `${title} · Parley`;
    crumbs.value = parents;
  }, [title, parents.map(({ to, label }) => `${to} ${label}`).join()]);
  return (
    <div class={isWide ? "page wide" : "page"}>
      <div class="page-head">
        <div class="page-title">
          <h1 ref={heading} tabIndex={-1} dir="auto">{title}</h1>
          {beside}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </div>
      {about && <p class="about">{about}</p>}
      {children}
    </div>
  );
}

export function Section(
  { title, about, actions, children, id }: {
    title?: string;
    about?: ComponentChildren;
    actions?: ComponentChildren;
    children: ComponentChildren;
    id?: string;
  },
) {
  return (
    <section class="section" id={id}>
      {(title || actions) && (
        <div class="section-head">
          {title ? <h2>{title}</h2> : about && <p class="about">{about}</p>}
          {actions && <div class="actions">{actions}</div>}
        </div>
      )}
      {about && (title || !actions) && <p class="about">{about}</p>}
      {children}
    </section>
  );
}

export function Card(
  { children, class: name = "" }: { children: ComponentChildren; class?: string },
) {
  return <div class={`card ${name}`}>{children}</div>;
}

// A row of figures.
export function Tiles({ children }: { children: ComponentChildren }) {
  return <dl class="tiles">{children}</dl>;
}

export function Tile(
  { label, value, hint, to }: {
    label: string;
    value: ComponentChildren;
    hint?: ComponentChildren;
    to?: string;
  },
) {
  return (
    <div class="tile">
      <dt>{to ? <a href={href(to)}>{label}</a> : label}</dt>
      <dd>{value}</dd>
      {hint && <dd class="hint">{hint}</dd>}
    </div>
  );
}

// Names and values, such as those of a record.
export function Facts({ rows }: { rows: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {rows.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
