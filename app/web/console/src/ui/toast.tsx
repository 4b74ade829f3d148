// Short messages of what was done, with a way to undo it. Errors stay where they happened.
import { signal } from "@preact/signals";
import { X } from "lucide-preact";

import { t } from "../texts";
import { Button, IconButton } from "./button";

interface Toast {
  id: number;
  text: string;
  undo: (() => void) | undefined;
}

const SHOWN_MS = 8_000;
const toasts = signal<Toast[]>([]);
let last = 0;

export function notify(text: string, undo?: () => void): void {
  const id = ++last;
  toasts.value = [...toasts.value.slice(-2), { id, text, undo }];
  setTimeout(() => close(id), SHOWN_MS);
}

// Does something after a while, unless it is undone. `apply` shows the result at once, `revert`
// takes that back.
export function doLater(
  text: string,
  { apply, revert, commit }: { apply?: () => void; revert?: () => void; commit: () => void },
): void {
  apply?.();
  const timer = setTimeout(finish, SHOWN_MS);
  addEventListener("pagehide", finish);
  function finish() {
    clearTimeout(timer);
    removeEventListener("pagehide", finish);
    commit();
  }
  notify(text, () => {
    clearTimeout(timer);
    removeEventListener("pagehide", finish);
    revert?.();
  });
}

function close(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, undo }) => (
        <div key={id} class="toast">
          <span dir="auto">{text}</span>
          {undo && (
            <Button
              kind="plain"
              onClick={() => {
                undo();
                close(id);
              }}
            >
              {t().common.undo}
            </Button>
          )}
          <IconButton icon={X} label={t().common.close} onClick={() => close(id)} />
        </div>
      ))}
    </div>
  );
}
