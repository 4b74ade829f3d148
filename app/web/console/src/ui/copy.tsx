import { Check, Copy } from "lucide-preact";
import { useEffect, useState } from "preact/hooks";

import { t } from "../texts";
import { Button, type Kind } from "./button";

function useCopy(text: string): [boolean, () => Promise<void>] {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), 2000);
    return () => clearTimeout(timer);
  }, [isCopied]);
  return [isCopied, async () => {
    await copy(text);
    setCopied(true);
  }];
}

// Pages without https have no clipboard.
export async function copy(text: string): Promise<void> {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement("textarea");
  area.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function CopyButton(
  { text, label, kind = "quiet" }: { text: string; label?: string; kind?: Kind },
) {
  const [isCopied, start] = useCopy(text);
  return (
    <Button kind={kind} icon={isCopied ? Check : Copy} onClick={start}>
      <span aria-live="polite">{isCopied ? t().common.copied : label ?? t().common.copy}</span>
    </Button>
  );
}

// A short text that copies at a click, such as an id.
export function CopyText({ text }: { text: string }) {
  const [isCopied, start] = useCopy(text);
  return (
    <button type="button" class="copy-text" onClick={start} title={t().common.copy}>
      <code>{text}</code>
      {isCopied ? <Check aria-hidden="true" /> : <Copy aria-hidden="true" />}
      <span class="hidden" aria-live="polite">{isCopied ? t().common.copied : ""}</span>
    </button>
  );
}
