import { X } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

import { t } from "../texts";
import { Button, IconButton } from "./button";
import { Problem } from "./states";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  actions?: ComponentChildren;
  // At the side of the window, for what is read beside the page.
  isDrawer?: boolean;
  isWide?: boolean;
  // Without it, only the actions of the dialog close it.
  canDismiss?: boolean;
}

// Open while it is rendered. The focus goes back to where it was.
export function Dialog(
  { title, onClose, children, actions, isDrawer, isWide, canDismiss = true }: DialogProps,
) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Before the page is painted: what is typed next is for the dialog.
  useLayoutEffect(() => {
    const opener = document.activeElement;
    const element = dialog.current;
    element?.showModal();
    return () => {
      // While it is open, nothing below it takes the focus.
      element?.close();
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);
  const kinds = `${isDrawer ? "drawer" : ""} ${isWide ? "wide" : ""}`;
  return (
    <dialog
      ref={dialog}
      class={`dialog ${kinds}`}
      aria-labelledby={id}
      onCancel={(event) => {
        if (event.target !== dialog.current) return;
        event.preventDefault();
        if (canDismiss) onClose();
      }}
      onMouseDown={(event) => {
        if (canDismiss && event.target === dialog.current) onClose();
      }}
    >
      <div class="dialog-body">
        <div class="dialog-head">
          <h2 id={id} dir="auto">{title}</h2>
          {canDismiss && <IconButton icon={X} label={t().common.close} onClick={onClose} />}
        </div>
        <div class="dialog-content">{children}</div>
        {actions && <div class="dialog-actions">{actions}</div>}
      </div>
    </dialog>
  );
}

// For what cannot be undone. `action` names it: "Delete the agent".
export function Confirm(
  { title, children, action, isBusy, error, onConfirm, onClose }: {
    title: string;
    children: ComponentChildren;
    action: string;
    isBusy?: boolean;
    error?: unknown;
    onConfirm: () => void;
    onClose: () => void;
  },
) {
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{t().common.cancel}</Button>
          <Button kind="danger" busy={isBusy ?? false} onClick={onConfirm}>{action}</Button>
        </>
      }
    >
      {children}
      <Problem error={error} />
    </Dialog>
  );
}
