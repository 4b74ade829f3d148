// How far the reading of a document is, and why it failed.
import { t } from "../../texts";
import { formatAgo, formatNumber, formatPercent } from "../../ui/format";
import { Badge, Progress, type Tone } from "../../ui/small";
import { type Document, isWorking } from "./types";

function toneOf({ status, progress }: Document): Tone {
  if (status === "failed") return "bad";
  if (progress.is_stuck) return "warn";
  return isWorking({ status, progress } as Document) ? "accent" : "good";
}

export function DocumentBadge({ document }: { document: Document }) {
  const { stage, is_stuck } = document.progress;
  const texts = t().knowledge;
  return (
    <Badge tone={toneOf(document)}>
      {is_stuck && document.status !== "failed" ? texts.stuck : texts.stages[stage]}
    </Badge>
  );
}

// What stands below the state: how much is done, or what is wrong.
export function explain({ error, status, progress }: Document): string {
  const texts = t().knowledge;
  if (status === "failed") return error ?? "";
  if (progress.is_stuck) {
    return progress.last_seen_at ? texts.lastSeen(formatAgo(progress.last_seen_at)) : texts.stuck;
  }
  if (progress.stage === "waiting" && progress.last_error) {
    const { attempt, max_attempts, last_error } = progress;
    return `${texts.attempt(formatNumber(attempt), formatNumber(max_attempts))}: ${last_error}`;
  }
  return progress.share === null || status === "ready" && progress.stage === "ready"
    ? ""
    : formatPercent(progress.share);
}

// In a row of a list.
export function DocumentState({ document }: { document: Document }) {
  const { progress, status } = document;
  const words = explain(document);
  const hasBar = isWorking(document) && progress.share !== null && !progress.is_stuck;
  return (
    <div class="reading">
      <span class="row">
        <DocumentBadge document={document} />
        {hasBar && <span class="soft">{words}</span>}
      </span>
      {hasBar
        ? <Progress value={progress.share ?? 0} max={1} label={words} />
        : words && (
          <span class={status === "failed" ? "problem" : "soft"} title={words} dir="auto">
            {words}
          </span>
        )}
    </div>
  );
}
