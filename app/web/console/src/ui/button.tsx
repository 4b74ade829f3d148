import type { LucideIcon } from "lucide-preact";
import type { ButtonHTMLAttributes, ComponentChildren } from "preact";

import { href } from "../base";

export type Kind = "primary" | "quiet" | "plain" | "danger";

type ButtonProps = Omit<ButtonHTMLAttributes<HTMLButtonElement>, "icon"> & {
  kind?: Kind;
  icon?: LucideIcon;
  busy?: boolean;
};

// A busy or disabled button keeps its size and its focus, and does nothing.
export function Button(
  { kind = "quiet", icon: Icon, busy, disabled, children, ...rest }: ButtonProps,
) {
  const isOff = busy || disabled;
  return (
    <button
      type="button"
      {...rest}
      class={`button ${kind} ${rest.class ?? ""}`}
      aria-disabled={isOff ? true : undefined}
      aria-busy={busy || undefined}
      onClick={isOff ? (event) => event.preventDefault() : rest.onClick}
    >
      {Icon && <Icon aria-hidden="true" />}
      {children}
    </button>
  );
}

// `label` is what screen readers say, and the tooltip.
export function IconButton(
  { icon: Icon, label, ...rest }: Omit<ButtonProps, "kind" | "children"> & {
    icon: LucideIcon;
    label: string;
  },
) {
  const { busy: _, ...attributes } = rest;
  return (
    <button
      type="button"
      {...attributes}
      class={`icon-button ${rest.class ?? ""}`}
      aria-label={label}
      title={label}
    >
      <Icon aria-hidden="true" />
    </button>
  );
}

export function LinkButton(
  { to, kind = "quiet", icon: Icon, children }: {
    to: string;
    kind?: Kind;
    icon?: LucideIcon;
    children: ComponentChildren;
  },
) {
  return (
    <a class={`button ${kind}`} href={href(to)}>
      {Icon && <Icon aria-hidden="true" />}
      {children}
    </a>
  );
}
