// Contents of records: Markdown, JSON, long texts.
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { required } from "../../../static/shared/dom.js";
import { MarkdownView } from "../../../static/shared/markdown.js";
import { t } from "../texts";
import { Button } from "./button";
import { CopyButton } from "./copy";
import { formatSize } from "./format";

// Renders nodes, never HTML.
export function Markdown({ text }: { text: string }) {
  const element = useRef<HTMLDivElement>(null);
  const view = useRef<MarkdownView | null>(null);
  useLayoutEffect(() => {
    view.current ??= new MarkdownView(required(element.current));
    view.current.update(text);
  }, [text]);
  return <div class="markdown" dir="auto" ref={element} />;
}

const SLICE = 100_000;

// A text of any length, which opens slice by slice.
export function LongText({ text, label }: { text: string; label: string }) {
  const [shown, setShown] = useState(SLICE);
  return (
    <div class="long-text">
      <pre class="code" tabIndex={0} aria-label={label} dir="auto">{text.slice(0, shown)}</pre>
      {text.length > shown && (
        <Button onClick={() => setShown(shown + SLICE)}>
          {t().common.more} ({formatSize(text.length - shown)})
        </Button>
      )}
    </div>
  );
}

export function Json({ value, label }: { value: unknown; label: string }) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "";
  return <LongText text={text} label={label} />;
}

// A snippet to copy.
export function Snippet({ text, label }: { text: string; label: string }) {
  return (
    <div class="snippet">
      <pre class="code" tabIndex={0} aria-label={label}>{text}</pre>
      <CopyButton text={text} />
    </div>
  );
}
