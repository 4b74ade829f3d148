// State that outlives a component: in the address, in this browser.
import { useLocation, useRoute } from "preact-iso";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import { search } from "../base";

type Values = Record<string, string | undefined>;

// The filters of a screen, which are in its address: a link shows the same rows to everybody.
export function useFilters(): [Values, (changes: Values) => void] {
  const { path, query, route } = useLocation();
  const change = useCallback(
    (changes: Values) => route(path + search({ ...query, ...changes }), true),
    [path, query, route],
  );
  return [query, change];
}

// Does something later, such as going to another screen, unless somebody has gone elsewhere since.
export function whileHere<Args extends unknown[]>(
  action: (...args: Args) => void,
): (...args: Args) => void {
  const { pathname } = location;
  return (...args) => {
    if (location.pathname === pathname) action(...args);
  };
}

// A value that follows another one when it has not changed for a while.
export function useDelayed<T>(value: T, milliseconds = 250): T {
  const [delayed, set] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => set(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return delayed;
}

export function readStored<T>(key: string): T | null {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

export function store(key: string, value: unknown): void {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // The storage of this browser is full or off.
  }
}

// Calls a listener for each key that is pressed outside of a text field; those with Ctrl or ⌘
// anywhere. `combination` is such as "?", "mod+k" or "g a".
export function useShortcut(combination: string, listener: () => void, enabled = true): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => {
    if (!enabled) return undefined;
    let before = "";
    const handle = (event: KeyboardEvent) => {
      const key = nameOf(event);
      const pressed = before && !key.startsWith("mod+") ? `${before} ${key}` : key;
      before = key === "g" ? "g" : "";
      if (pressed !== combination) return;
      if (!key.startsWith("mod+") && isTyping(event)) return;
      event.preventDefault();
      latest.current();
    };
    addEventListener("keydown", handle);
    return () => removeEventListener("keydown", handle);
  }, [combination, enabled]);
}

function nameOf(event: KeyboardEvent): string {
  return event.ctrlKey || event.metaKey ? `mod+${event.key.toLowerCase()}` : event.key;
}

function isTyping(event: KeyboardEvent): boolean {
  const target = event.composedPath()[0];
  return target instanceof HTMLElement &&
    (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName) ||
      Boolean(target.closest("dialog[open]")));
}

// The parts of the address below the screen: `["agt_1", "versions"]`.
export function useSubPath(): string[] {
  const { params } = useRoute();
  return params.rest?.split("/").filter(Boolean) ?? [];
}
