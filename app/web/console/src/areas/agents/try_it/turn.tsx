import { ChevronRight, RotateCcw, ScanEye } from "lucide-preact";

import { t } from "../../../texts";
import { IconButton } from "../../../ui/button";
import { Json, Markdown } from "../../../ui/content";
import { formatDuration, formatNumber } from "../../../ui/format";
import { Badge } from "../../../ui/small";
import { Problem } from "../../../ui/states";
import type { ToolCall, Turn } from "./chat";

interface TurnProps {
  turn: Turn;
  onAgain?: ((turn: Turn) => void) | undefined;
  onInspect?: ((turn: Turn) => void) | undefined;
}

export function TurnView({ turn, onAgain, onInspect }: TurnProps) {
  const texts = t().agents.tryIt;
  return (
    <li class="turn">
      <p class="question" dir="auto">{turn.question}</p>
      <div class="answer" aria-busy={turn.status === "running" || undefined}>
        <ToolCalls calls={turn.calls} />
        {turn.answer && <Markdown text={turn.answer} />}
        {turn.status === "waiting" && <p class="soft waiting">{describeWait(turn)}</p>}
        {turn.status === "stopped" && <Badge tone="warn">{texts.stopped}</Badge>}
        {turn.error && <Problem error={turn.error} />}
        <Sources sources={turn.sources} />
        <div class="turn-foot">
          <span class="soft">{describeFigures(turn)}</span>
          {turn.messageId && onAgain && (
            <IconButton
              icon={RotateCcw}
              label={texts.again}
              onClick={() => onAgain(turn)}
            />
          )}
          {turn.messageId && onInspect && (
            <IconButton
              icon={ScanEye}
              label={texts.inspect}
              onClick={() => onInspect(turn)}
            />
          )}
        </div>
      </div>
    </li>
  );
}

function describeWait({ wait }: Turn): string {
  const texts = t().agents.tryIt;
  if (wait.position) return texts.queue(formatNumber(wait.position));
  return wait.seconds ? texts.thinking(formatDuration(wait.seconds * 1000)) : texts.waiting;
}

function describeFigures({ usage, milliseconds, status }: Turn): string {
  if (status !== "complete") return "";
  return [
    milliseconds !== null && formatDuration(milliseconds),
    usage && t().agents.tryIt.tokens(
      formatNumber(usage.prompt_tokens),
      formatNumber(usage.completion_tokens),
    ),
  ].filter(Boolean).join(" · ");
}

export function ToolCalls({ calls }: { calls: ToolCall[] }) {
  const texts = t().agents.tryIt;
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
          <Json value={call.input} label={texts.input} />
          {call.status && (
            <>
              <h4>{texts.output}</h4>
              <Json value={call.output} label={texts.output} />
            </>
          )}
        </details>
      ))}
    </>
  );
}

export function Sources({ sources }: { sources: Turn["sources"] }) {
  if (!sources.length) return null;
  return (
    <details class="fold">
      <summary>
        <ChevronRight aria-hidden="true" />
        {t().agents.tryIt.sources(sources.length)}
      </summary>
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
    </details>
  );
}
