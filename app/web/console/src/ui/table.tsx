// Tables of records. A row opens with Enter or a click; the arrow keys move between rows. Of long
// lists only the visible rows are in the document.
import type { ComponentChildren } from "preact";
import { useLocation } from "preact-iso";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { href } from "../base";
import { t } from "../texts";
import { Button } from "./button";

export interface Column<T> {
  key: string;
  label: string;
  cell: (row: T) => ComponentChildren;
  // Right-aligned figures.
  isNumber?: boolean;
  // Hidden where the window is narrow.
  isSecondary?: boolean;
  // CSS width; the rest is shared.
  width?: string;
}

interface TableProps<T> {
  // What the table lists, for screen readers.
  label: string;
  columns: Column<T>[];
  rows: T[];
  keyOf: (row: T) => string;
  // The screen of a row, such as `/agents/agt_1`.
  linkOf?: (row: T) => string;
  onOpen?: (row: T) => void;
  // Marks a row, such as an unread one.
  isStrong?: (row: T) => boolean;
  actionsOf?: (row: T) => ComponentChildren;
  // Called when the end of the rows comes into view.
  onMore?: (() => void) | undefined;
  hasMore?: boolean | undefined;
  isLoadingMore?: boolean;
  rowHeight?: number;
}

const ALL_BELOW = 120;
const MARGIN = 20;

export function Table<T>(props: TableProps<T>) {
  const { label, columns, rows, keyOf, linkOf, onOpen, actionsOf, rowHeight = 49 } = props;
  const { route } = useLocation();
  const body = useRef<HTMLTableSectionElement>(null);
  const [first, last] = useWindow(body, rows.length, rowHeight);
  const open = (row: T) => (linkOf ? route(href(linkOf(row))) : onOpen?.(row));
  const canOpen = Boolean(linkOf || onOpen);
  return (
    <div class="table-frame">
      <table class="table" aria-label={label} aria-rowcount={rows.length + 1}>
        <colgroup>
          {columns.map(({ key, width, isSecondary }) => (
            <col key={key} class={isSecondary ? "secondary" : ""} style={width ? { width } : {}} />
          ))}
          {actionsOf && <col class="row-actions" />}
        </colgroup>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.key} scope="col" class={classOf(column)}>{column.label}</th>
            ))}
            {actionsOf && (
              <th scope="col">
                <span class="hidden">{t().common.actions}</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody ref={body} onKeyDown={moveBetweenRows}>
          {first > 0 && <Spacer height={first * rowHeight} />}
          {rows.slice(first, last).map((row, index) => (
            <tr
              key={keyOf(row)}
              class={`${canOpen ? "opens" : ""} ${props.isStrong?.(row) ? "strong" : ""}`}
              aria-rowindex={first + index + 2}
              tabIndex={canOpen ? 0 : undefined}
              onClick={(event) => canOpen && isPlain(event) && open(row)}
              onKeyDown={(event) => {
                if (event.key !== "Enter" || event.target !== event.currentTarget) return;
                // The key is not also for what gets the focus.
                event.preventDefault();
                open(row);
              }}
            >
              {columns.map((column, position) => (
                <td key={column.key} class={classOf(column)} dir="auto">
                  {position === 0 && linkOf
                    ? <a href={href(linkOf(row))} tabIndex={-1}>{column.cell(row)}</a>
                    : column.cell(row)}
                </td>
              ))}
              {actionsOf && <td class="row-actions">{actionsOf(row)}</td>}
            </tr>
          ))}
          {last < rows.length && <Spacer height={(rows.length - last) * rowHeight} />}
        </tbody>
      </table>
      {props.hasMore && <More isLoading={props.isLoadingMore ?? false} onMore={props.onMore} />}
    </div>
  );
}

function classOf<T>({ isNumber, isSecondary }: Column<T>): string {
  return `${isNumber ? "number" : ""} ${isSecondary ? "secondary" : ""}`;
}

function Spacer({ height }: { height: number }) {
  return <tr class="spacer" aria-hidden="true" style={{ height: `${height}px` }} />;
}

// A click on a control of the row is for that control, and a selection of text for the reader.
function isPlain(event: MouseEvent): boolean {
  const target = event.target as Element;
  if (target.closest("a, button, input, select, [role=menu]")) return false;
  return !event.ctrlKey && !event.metaKey && !String(getSelection());
}

function moveBetweenRows(event: KeyboardEvent): void {
  const row = (event.target as Element).closest("tr");
  if (!row || event.target !== row) return;
  const next = event.key === "ArrowDown"
    ? row.nextElementSibling
    : event.key === "ArrowUp"
    ? row.previousElementSibling
    : null;
  if (!(next instanceof HTMLElement)) return;
  event.preventDefault();
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

// The rows that are in the window, with some more on both sides.
function useWindow(
  body: { current: HTMLElement | null },
  count: number,
  height: number,
): [number, number] {
  const [range, setRange] = useState<[number, number]>([0, ALL_BELOW]);
  useLayoutEffect(() => {
    if (count <= ALL_BELOW) return undefined;
    const measure = () => {
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const first = Math.max(0, Math.floor(-top / height) - MARGIN);
      const last = Math.min(count, Math.ceil((innerHeight - top) / height) + MARGIN);
      setRange((before) => (before[0] === first && before[1] === last ? before : [first, last]));
    };
    measure();
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, [count, height]);
  return count <= ALL_BELOW ? [0, count] : range;
}

// Loads the next rows when it comes into view; the button does so for the keyboard.
function More({ isLoading, onMore }: { isLoading: boolean; onMore: (() => void) | undefined }) {
  const element = useRef<HTMLDivElement>(null);
  const latest = useRef(onMore);
  latest.current = onMore;
  useEffect(() => {
    if (isLoading || !element.current) return undefined;
    const observer = new IntersectionObserver(
      ([entry]) => entry?.isIntersecting && latest.current?.(),
      { rootMargin: "600px" },
    );
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [isLoading]);
  return (
    <div class="more" ref={element}>
      <Button busy={isLoading} onClick={() => onMore?.()}>
        {isLoading ? t().common.loading : t().common.more}
      </Button>
    </div>
  );
}
