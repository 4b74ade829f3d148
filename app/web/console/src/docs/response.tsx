// What a request of "Try it" was answered with.
import { useEffect, useRef, useState } from "preact/hooks";

import { t } from "../texts";
import { CopyButton } from "../ui/copy";
import { Button } from "../ui/button";
import { formatDuration, formatSize } from "../ui/format";
import { Badge } from "../ui/small";
import type { Received } from "./send";

const MAX_SHOWN_CHARS = 20_000;

export function ResponseView({ received, isRunning }: { received: Received; isRunning: boolean }) {
  const { status, reason, milliseconds, headers } = received;
  const element = useRef<HTMLElement>(null);
  // The form may be as high as the window.
  useEffect(() => element.current?.scrollIntoView({ block: "nearest" }), []);
  const tone = status < 300 ? "good" : status < 500 ? "warn" : "bad";
  return (
    <section ref={element} class="stack docs-response" aria-label={t().docs.response}>
      <p class="row" role="status">
        <Badge tone={tone}>{status} {reason}</Badge>
        <span class="soft">{formatDuration(milliseconds)}</span>
        {received.file && <span class="soft">{formatSize(received.file.size)}</span>}
      </p>
      <details>
        <summary>{t().docs.headers(headers.length)}</summary>
        <dl class="docs-headers">
          {headers.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      </details>
      <Content received={received} isRunning={isRunning} />
    </section>
  );
}

function Content({ received, isRunning }: { received: Received; isRunning: boolean }) {
  const { text, file } = received;
  if (text === null) return file && <Download file={file} headers={received.headers} />;
  if (!text) return isRunning ? null : <p class="soft">{t().docs.emptyBody}</p>;
  return <Text text={text} />;
}

function Text({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(false);
  const isCut = !isWhole && text.length > MAX_SHOWN_CHARS;
  return (
    <div class="snippet">
      <pre class="code" tabIndex={0} aria-label={t().docs.responseBody}>
        {isCut ? text.slice(0, MAX_SHOWN_CHARS) : text}
      </pre>
      <div class="row">
        {isCut && (
          <Button onClick={() => setWhole(true)}>
            {t().docs.showAll(formatSize(text.length))}
          </Button>
        )}
        <CopyButton text={text} />
      </div>
    </div>
  );
}

function Download({ file, headers }: { file: Blob; headers: [string, string][] }) {
  const [url, setUrl] = useState("");
  useEffect(() => {
    const created = URL.createObjectURL(file);
    setUrl(created);
    return () => URL.revokeObjectURL(created);
  }, [file]);
  const disposition = headers.find(([name]) => name === "content-disposition")?.[1] ?? "";
  const name = /filename="?([^";]+)/.exec(disposition)?.[1] ?? "download";
  return (
    <p>
      <a class="button" href={url} download={name}>{t().docs.download(formatSize(file.size))}</a>
    </p>
  );
}
