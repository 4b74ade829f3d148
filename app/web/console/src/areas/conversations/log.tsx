// A log of which only the visible entries are in the document. It opens at its end; what is in view
// stays there while entries are added before it, or change their height.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

// The height of an entry that was not in the document yet.
const GUESS = 120;
const MARGIN = 800;

interface LogProps {
  label: string;
  keys: string[];
  entry: (index: number) => ComponentChildren;
  // Called while the beginning is near.
  onStart: () => void;
}

// The entry at the upper edge, and how far above the edge it begins; or the end of the log.
type Anchor = { key: string; above: number } | "end";

export function Log({ label, keys, entry, onStart }: LogProps) {
  const frame = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLOListElement>(null);
  const heights = useRef(new Map<string, number>());
  const anchor = useRef<Anchor>("end");
  const lastTop = useRef(0);
  const [shown, setShown] = useState<[first: string, last: string]>(() => [
    keys[Math.max(0, keys.length - 20)] ?? "",
    keys.at(-1) ?? "",
  ]);
  const heightOf = (key: string) => heights.current.get(key) ?? GUESS;
  const first = Math.max(0, keys.indexOf(shown[0]));
  const last = Math.max(first, keys.lastIndexOf(shown[1]));
  const sum = (from: number, to: number) =>
    keys.slice(from, to).reduce((height, key) => height + heightOf(key), 0);

  const findAnchor = (top: number): Anchor => {
    let start = 0;
    for (const key of keys) {
      const end = start + heightOf(key);
      if (end > top) return { key, above: top - start };
      start = end;
    }
    return "end";
  };

  const update = () => {
    const element = frame.current;
    if (!element) return;
    for (const item of list.current?.children ?? []) {
      const { key } = (item as HTMLElement).dataset;
      if (key) heights.current.set(key, item.getBoundingClientRect().height);
    }
    element.scrollTop = anchor.current === "end"
      ? element.scrollHeight
      : sum(0, keys.indexOf(anchor.current.key)) + anchor.current.above;
    lastTop.current = element.scrollTop;
    show(element);
  };

  const show = (element: HTMLElement) => {
    const top = element.scrollTop;
    const bottom = top + element.clientHeight;
    let start = 0;
    const visible = keys.filter((key) => {
      const end = start + heightOf(key);
      const isVisible = end > top - MARGIN && start < bottom + MARGIN;
      start = end;
      return isVisible;
    });
    const next = [visible[0] ?? "", visible.at(-1) ?? ""] as [string, string];
    setShown((now) => (now[0] === next[0] && now[1] === next[1] ? now : next));
    if (top < MARGIN) onStart();
  };

  const latest = useRef(update);
  latest.current = update;
  useLayoutEffect(update);
  useEffect(() => {
    const observer = new ResizeObserver(() => latest.current());
    if (frame.current) observer.observe(frame.current);
    if (list.current) observer.observe(list.current);
    return () => observer.disconnect();
  }, []);
  useFocusWithin(frame);

  return (
    <div
      ref={frame}
      class="log"
      role="region"
      aria-label={label}
      tabIndex={0}
      onClickCapture={({ currentTarget }) => (anchor.current = findAnchor(currentTarget.scrollTop))}
      onScroll={({ currentTarget: element }) => {
        const top = element.scrollTop;
        if (Math.abs(top - lastTop.current) < 1) return;
        lastTop.current = top;
        const isEnd = element.scrollHeight - top - element.clientHeight < 4;
        anchor.current = isEnd ? "end" : findAnchor(top);
        show(element);
      }}
    >
      <ol
        ref={list}
        style={{
          paddingBlockStart: `${sum(0, first)}px`,
          paddingBlockEnd: `${sum(last + 1, keys.length)}px`,
        }}
      >
        {keys.slice(first, last + 1).map((key, index) => (
          <li key={key} data-key={key} aria-setsize={keys.length} aria-posinset={first + index + 1}>
            {entry(first + index)}
          </li>
        ))}
      </ol>
    </div>
  );
}

// An entry that leaves the document must not take the focus with it.
function useFocusWithin(frame: { current: HTMLElement | null }): void {
  const focused = useRef<EventTarget | null>(null);
  useEffect(() => {
    const note = (event: FocusEvent) => (focused.current = event.target);
    frame.current?.addEventListener("focusin", note);
    return () => frame.current?.removeEventListener("focusin", note);
  }, []);
  useLayoutEffect(() => {
    const element = focused.current;
    if (!(element instanceof Element) || element.isConnected) return;
    focused.current = null;
    if (document.activeElement === document.body) frame.current?.focus({ preventScroll: true });
  });
}
