import type { LucideIcon } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";

import { placeBelow } from "./place";

export interface MenuItem {
  label: string;
  icon?: LucideIcon;
  isDanger?: boolean;
  onSelect: () => void;
}

// A button that opens a list of actions. The arrow keys move in it, Escape closes it.
export function Menu(
  { label, icon: Icon, items, children, class: name = "icon-button" }: {
    label: string;
    icon?: LucideIcon;
    items: MenuItem[];
    children?: ComponentChildren;
    class?: string;
  },
) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const place = () => {
    if (button.current && list.current) placeBelow(button.current, list.current);
  };
  const handleKey = (event: KeyboardEvent) => {
    const all = [...(list.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const index = all.indexOf(document.activeElement as HTMLElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined || !all.length) return;
    event.preventDefault();
    all[(index + step + all.length) % all.length]?.focus();
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        class={name}
        aria-label={children ? undefined : label}
        title={children ? undefined : label}
        aria-haspopup="menu"
        popovertarget={id}
      >
        {Icon && <Icon aria-hidden="true" />}
        {children}
      </button>
      <div
        ref={list}
        id={id}
        popover="auto"
        role="menu"
        class="menu"
        aria-label={label}
        onKeyDown={handleKey}
        onToggle={(event) => {
          if (event.newState === "open") place();
        }}
      >
        {items.map(({ label, icon: ItemIcon, isDanger, onSelect }, index) => (
          <button
            key={label}
            type="button"
            role="menuitem"
            class={isDanger ? "danger" : ""}
            // Takes the focus as soon as the menu opens.
            autoFocus={index === 0}
            onClick={() => {
              list.current?.hidePopover();
              onSelect();
            }}
          >
            {ItemIcon && <ItemIcon aria-hidden="true" />}
            {label}
          </button>
        ))}
      </div>
    </>
  );
}
