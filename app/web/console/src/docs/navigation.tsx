// The operations by group, and the field that searches them.
import { Menu as MenuIcon } from "lucide-preact";
import { useLocation } from "preact-iso";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Mark } from "../shell/mark";
import { t } from "../texts";
import { IconButton } from "../ui/button";
import { SearchField } from "../ui/field";
import { useShortcut } from "../ui/state";
import { find, type Group, type Operation, type Reference, type Tag } from "./document";
import { pathOf } from "./state";

const ID = "navigation";
// More would be slow to draw, and nobody reads them.
const MAX_FOUND = 60;

export function Navigation(
  { reference, parts }: { reference: Reference | null; parts: string[] },
) {
  const { path } = useLocation();
  const rail = useRef<HTMLElement>(null);
  const [text, setText] = useState("");
  useEffect(() => {
    if (rail.current?.matches(":popover-open")) rail.current.hidePopover();
  }, [path]);
  useShortcut("/", () => {
    const field = rail.current?.querySelector<HTMLInputElement>("[data-search]");
    if (!field?.checkVisibility()) rail.current?.showPopover();
    field?.focus();
    field?.select();
  });
  const operation = reference?.operations.get(parts[1] ?? "");
  return (
    <aside class="rail" id={ID} popover="auto" ref={rail} onKeyDown={moveFocus}>
      <a class="brand" href={pathOf()}>
        <Mark /> {t().docs.title}
      </a>
      <search>
        <SearchField value={text} onInput={setText} label={t().docs.search} />
        <kbd aria-hidden="true">/</kbd>
      </search>
      <nav aria-label={t().docs.operations}>
        {reference && text.trim()
          ? <Results reference={reference} text={text} current={operation} />
          : (
            <>
              <ul class="rail-group">
                <PageLink address="" title={t().docs.introduction} isOpen={!parts.length} />
                <PageLink address="errors" title={t().docs.errors} isOpen={parts[0] === "errors"} />
              </ul>
              {reference?.groups.map((group) => (
                <GroupLinks key={group.name} group={group} current={operation} />
              ))}
            </>
          )}
      </nav>
    </aside>
  );
}

export function NavigationButton() {
  return (
    <span class="rail-button">
      <IconButton icon={MenuIcon} label={t().rail.openMenu} popovertarget={ID} />
    </span>
  );
}

// The arrow keys move between the search field and the links below it; Enter in the field opens the
// first one.
function moveFocus(event: KeyboardEvent) {
  const rail = event.currentTarget as HTMLElement;
  const target = event.target as HTMLElement;
  const links = [...rail.querySelectorAll<HTMLElement>("nav :is(a, summary)")]
    .filter((link) => link.checkVisibility());
  const field = rail.querySelector<HTMLElement>("[data-search]");
  if (event.key === "Enter" && target === field && rail.querySelector("[data-found]")) {
    links[0]?.click();
    event.preventDefault();
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  const stops = [...(field ? [field] : []), ...links];
  const next = stops[stops.indexOf(target) + step];
  if (!next || !stops.includes(target)) return;
  event.preventDefault();
  next.focus();
}

function Results(
  { reference, text, current }: {
    reference: Reference;
    text: string;
    current: Operation | undefined;
  },
) {
  const found = useMemo(() => find(reference, text), [reference, text]);
  const word = text.trim().toLowerCase();
  const codes = reference.codes.filter(({ code }) =>
    code === word || word.length > 3 &&
      code.includes(word)
  ).slice(0, 5);
  return (
    <div data-found>
      <p class="rail-title" role="status">
        {found.length ? t().docs.found(found.length) : t().docs.nothingFound}
      </p>
      <ul>
        {found.slice(0, MAX_FOUND).map((operation) => (
          <OperationLink
            key={operation.id}
            operation={operation}
            isOpen={operation === current}
            hasPath
          />
        ))}
      </ul>
      {codes.length > 0 && (
        <>
          <p class="rail-title">{t().docs.errors}</p>
          <ul>
            {codes.map(({ code }) => (
              <PageLink key={code} address={`errors/${code}`} title={code} isOpen={false} />
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

function PageLink(
  { address, title, isOpen }: { address: string; title: string; isOpen: boolean },
) {
  return (
    <li>
      <a class="rail-link" href={pathOf(address)} aria-current={isOpen ? "page" : undefined}>
        {title}
      </a>
    </li>
  );
}

function GroupLinks({ group, current }: { group: Group; current: Operation | undefined }) {
  return (
    <div class="rail-group">
      <p class="rail-title">{group.name}</p>
      {group.tags.map((tag) => <TagLinks key={tag.name} tag={tag} current={current} />)}
    </div>
  );
}

function TagLinks({ tag, current }: { tag: Tag; current: Operation | undefined }) {
  const isCurrent = current?.tag === tag.name;
  const [isOpen, setOpen] = useState(isCurrent);
  useEffect(() => {
    if (isCurrent) setOpen(true);
  }, [isCurrent]);
  return (
    <details
      class="tag"
      open={isOpen}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary class="rail-link" title={tag.about}>
        <span class="grow">{tag.name}</span>
        <span class="count">{tag.operations.length}</span>
      </summary>
      {isOpen && (
        <ul>
          {tag.operations.map((operation) => (
            <OperationLink
              key={operation.id}
              operation={operation}
              isOpen={operation === current}
            />
          ))}
        </ul>
      )}
    </details>
  );
}

function OperationLink(
  { operation, isOpen, hasPath }: { operation: Operation; isOpen: boolean; hasPath?: boolean },
) {
  const link = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (isOpen) link.current?.scrollIntoView({ block: "nearest" });
  }, [isOpen]);
  return (
    <li>
      <a
        ref={link}
        class="rail-link operation-link"
        href={pathOf(operation.address)}
        aria-current={isOpen ? "page" : undefined}
      >
        <span class="grow">
          {operation.summary}
          {hasPath && <code>{operation.path}</code>}
        </span>
        <Method name={operation.method} />
      </a>
    </li>
  );
}

export function Method({ name }: { name: string }) {
  return <code class={`method ${name.toLowerCase()}`}>{name}</code>;
}
