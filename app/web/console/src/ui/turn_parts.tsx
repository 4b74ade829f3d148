// Parts of an answer, folded: the calls of tools and the sources.
import { ChevronRight } from "lucide-preact";
import { useState } from "preact/hooks";

import { useChange } from "../api/queries";
import type { Schemas } from "../api/types";
import { t } from "../texts";
import { Button } from "./button";
import { Json } from "./content";
import { formatDuration, formatNumber } from "./format";
import { Badge } from "./small";
import { Problem } from "./states";

export type Source = Schemas["SourceView"];
export type ToolCall = Partial<Omit<Schemas["ToolCallView"], "id" | "tool">> & {
  id: string;
  tool: string;
};
type LoadSlice = (offset: number) => Promise<Schemas["TextSlice"]>;
export type LoadBody = (callId: string, part: "input" | "output", offset: number) => ReturnType<
  LoadSlice
>;

// The beginning of a text whose rest is read when somebody asks for it.
export function CutText(
  { text, total, label, load }: {
    text: string;
    total: number;
    label: string;
    load: LoadSlice;
  },
) {
  const [rest, setRest] = useState("");
  // The server counts characters, strings of JavaScript have two units for some.
  const [next, setNext] = useState<number | null>(() => [...text].length);
  const read = useChange(async (offset: number) => {
    const slice = await load(offset);
    setRest((before) => before + slice.text);
    setNext(slice.next_offset);
  });
  return (
    <div class="long-text">
      <pre class="code" tabIndex={0} aria-label={label} dir="auto">{text}{rest}</pre>
      {next !== null && (
        <Button busy={read.isPending} onClick={() => read.mutate(next)}>
          {t().turns.moreText(formatNumber(total - next))}
        </Button>
      )}
      <Problem error={read.error} />
    </div>
  );
}

export function ToolCalls({ calls, load }: { calls: ToolCall[]; load?: LoadBody }) {
  const texts = t().turns;
  return (
    <>
      {calls.map((call) => (
        <details key={call.id} class="fold">
          <summary>
            <ChevronRight aria-hidden="true" />
            <span class="clip" dir="auto">{call.tool}</span>
            {call.status && call.status !== "completed" && (
              <Badge tone="bad">{texts.callStatuses[call.status]}</Badge>
            )}
            {call.execution_time_ms !== undefined && (
              <span class="soft">{formatDuration(call.execution_time_ms)}</span>
            )}
          </summary>
          <h4>{texts.input}</h4>
          <CallBody call={call} part="input" load={load} />
          {call.status && (
            <>
              <h4>{texts.output}</h4>
              <CallBody call={call} part="output" load={load} />
            </>
          )}
        </details>
      ))}
    </>
  );
}

function CallBody(
  { call, part, load }: {
    call: ToolCall;
    part: "input" | "output";
    load: LoadBody | undefined;
  },
) {
  const label = t().turns[part];
  const total = call[`${part}_chars`];
  if (!total || !load) return <Json value={call[part]} label={label} />;
  return (
    <CutText
      text={String(call[part] ?? "")}
      total={total}
      label={label}
      load={(offset) => load(call.id, part, offset)}
    />
  );
}

export function Sources({ sources }: { sources: Source[] }) {
  if (!sources.length) return null;
  return (
    <details class="fold">
      <summary>
        <ChevronRight aria-hidden="true" />
        {t().turns.sources(sources.length)}
      </summary>
      <SourceList sources={sources} />
    </details>
  );
}

export function SourceList({ sources }: { sources: Source[] }) {
  return (
    <ol class="sources">
      {sources.map((source, index) => (
        <li key={index}>
          <p class="source-name">
            <span class="clip" dir="auto">{source.document_name}</span>
            <span class="soft number">
              {formatNumber(source.relevance_score, { maximumFractionDigits: 2 })}
            </span>
          </p>
          <p class="soft" dir="auto">{source.chunk_preview}</p>
        </li>
      ))}
    </ol>
  );
}
