// How much of a limit is used.
import type { ComponentChildren } from "preact";

const WARN = 0.8;

export function Meter(
  { label, used, limit, children }: {
    label: ComponentChildren;
    used: number;
    limit: number;
    // What the bar says, in words.
    children: ComponentChildren;
  },
) {
  const share = limit > 0 ? used / limit : 1;
  const tone = share >= 1 ? "bad" : share >= WARN ? "warn" : "";
  return (
    <div class={`meter ${tone}`}>
      <div>
        <span dir="auto">{label}</span>
        <span class="soft">{children}</span>
      </div>
      <progress value={Math.min(used, limit)} max={limit || 1} aria-hidden="true" />
    </div>
  );
}
