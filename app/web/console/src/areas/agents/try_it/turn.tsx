import { RotateCcw, ScanEye } from "lucide-preact";

import { t } from "../../../texts";
import { IconButton } from "../../../ui/button";
import { Markdown } from "../../../ui/content";
import { formatDuration, formatNumber } from "../../../ui/format";
import { Badge } from "../../../ui/small";
import { Problem } from "../../../ui/states";
import { Sources, ToolCalls } from "../../../ui/turn_parts";
import type { Turn } from "./chat";

interface TurnProps {
  turn: Turn;
  onAgain?: ((turn: Turn) => void) | undefined;
  onInspect?: ((turn: Turn) => void) | undefined;
}

export function TurnView({ turn, onAgain, onInspect }: TurnProps) {
  const texts = t().agents.tryIt;
  return (
    <li class="turn">
      {turn.question && <p class="question" dir="auto">{turn.question}</p>}
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
    usage && t().turns.tokensBoth(
      formatNumber(usage.prompt_tokens),
      formatNumber(usage.completion_tokens),
    ),
  ].filter(Boolean).join(" · ");
}
