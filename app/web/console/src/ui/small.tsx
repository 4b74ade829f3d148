// Small parts that many screens use.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { useFilters } from "./state";
import { formatAgo, formatTime } from "./format";

export type Tone = "good" | "bad" | "warn" | "accent" | "neutral";

export function Badge(
  { tone = "neutral", children }: { tone?: Tone; children: ComponentChildren },
) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

// When something happened: roughly, and exactly on hover.
export function Ago({ at }: { at: string | null | undefined }) {
  const [, redraw] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => redraw(Date.now()), 30_000);
    return () => clearInterval(timer);
  }, []);
  if (!at) return <span class="soft">–</span>;
  return <time dateTime={at} title={formatTime(at)}>{formatAgo(at)}</time>;
}

export type Tab = readonly [key: string, label: string, count?: number];

// Tabs of a screen. The open one is in the address, under `name`.
export function Tabs(
  { label, tabs, name = "tab", children }: {
    label: string;
    tabs: readonly Tab[];
    name?: string;
    children: (key: string) => ComponentChildren;
  },
) {
  const [filters, change] = useFilters();
  const list = useRef<HTMLDivElement>(null);
  const open = tabs.find(([key]) => key === filters[name])?.[0] ?? tabs[0][0];
  useEffect(() => {
    const tab = list.current?.querySelector("[aria-selected=true]");
    tab?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [open]);
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const index = tabs.findIndex(([key]) => key === open);
    const next = tabs[(index + step + tabs.length) % tabs.length];
    change({ [name]: next[0] });
    document.getElementById(`tab-${next[0]}`)?.focus();
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} onKeyDown={move} ref={list}>
        {tabs.map(([key, text, count]) => (
          <button
            key={key}
            type="button"
            role="tab"
            id={`tab-${key}`}
            aria-selected={key === open}
            aria-controls={`panel-${name}`}
            tabIndex={key === open ? 0 : -1}
            onClick={() => change({ [name]: key })}
          >
            {text}
            {count !== undefined && <span class="count">{count}</span>}
          </button>
        ))}
      </div>
      <div id={`panel-${name}`} role="tabpanel" aria-labelledby={`tab-${open}`} class="panel">
        {children(open)}
      </div>
    </>
  );
}

export function Progress({ value, max, label }: { value: number; max: number; label: string }) {
  return <progress value={value} max={max || 1} aria-label={label} title={label} />;
}

// Pictures are at the address of the instance, which may have another name than this page's.
export function pathOfPicture(url: string | null): string | null {
  return url && new URL(url).pathname;
}

export function Avatar({ name, src }: { name: string; src?: string | null | undefined }) {
  const initials = name.split(/\s+/).map((word) => word[0]).filter(Boolean).slice(0, 2).join("");
  return src
    ? <img class="avatar" src={src} alt="" loading="lazy" />
    : <span class="avatar" aria-hidden="true">{initials.toUpperCase()}</span>;
}
