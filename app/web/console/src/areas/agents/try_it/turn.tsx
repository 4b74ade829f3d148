import { History, RotateCcw, ScanEye } from "lucide-preact";

import { t } from "../../../texts";
import { IconButton } from "../../../ui/button";
import { Markdown } from "../../../ui/content";
import { formatCost, formatDuration, formatNumber } from "../../../ui/format";
import { Badge } from "../../../ui/small";
import { Problem } from "../../../ui/states";
import { Sources, ToolCalls } from "../../../ui/turn_parts";
import { type AnswerId, answerOf, type Turn } from "./turns";

interface TurnProps {
  turn: Turn;
  onAgain?: ((turn: Turn) => void) | undefined;
  onInspect?: ((answer: AnswerId) => void) | undefined;
}

export function TurnView({ turn, onAgain, onInspect }: TurnProps) {
  const texts = t().agents.tryIt;
  const answer = answerOf(turn);
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
          {answer && onAgain && (
            <IconButton
              icon={RotateCcw}
              label={texts.again}
              onClick={() => onAgain(turn)}
            />
          )}
          {turn.original && onInspect && (
            <IconButton
              icon={History}
              label={texts.inspectOriginal}
              onClick={() => turn.original && onInspect(turn.original)}
            />
          )}
          {answer && onInspect && (
            <IconButton
              icon={ScanEye}
              label={texts.inspect}
              onClick={() => onInspect(answer)}
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

function describeFigures({ usage, milliseconds, cost, status }: Turn): string {
  return status === "complete" ? describeSpending({ usage, milliseconds, cost }) : "";
}

type Spending = Pick<Turn, "usage" | "milliseconds" | "cost">;

export function describeSpending({ usage, milliseconds, cost }: Spending): string {
  return [
    milliseconds !== null && formatDuration(milliseconds),
    usage && t().turns.tokensBoth(
      formatNumber(usage.prompt_tokens),
      formatNumber(usage.completion_tokens),
    ),
    cost !== null && formatCost(cost),
  ].filter(Boolean).join(" · ");
}

export function isAnswered({ status }: Turn): boolean {
  return status === "complete";
}

// Of all answers of a conversation together.
export function sumSpending(turns: Turn[]): Spending {
  const complete = turns.filter(isAnswered);
  const sum = (pick: (turn: Turn) => number | null | undefined) =>
    complete.reduce((total, turn) => total + (pick(turn) ?? 0), 0);
  const prompt_tokens = sum(({ usage }) => usage?.prompt_tokens);
  const completion_tokens = sum(({ usage }) => usage?.completion_tokens);
  return {
    usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
    milliseconds: sum(({ milliseconds }) => milliseconds),
    cost: complete.some(({ cost }) => cost !== null) ? sum(({ cost }) => cost) : null,
  };
}
