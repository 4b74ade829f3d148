import { BellRing, CircleCheck, Cog, MessageSquareWarning } from "lucide-preact";

import { href } from "../../base";
import { t } from "../../texts";
import { Section } from "../../ui/page";
import { Ago } from "../../ui/small";
import { Failure as LoadFailure, Skeleton } from "../../ui/states";
import { type Failure, useFailures } from "./failures";

const ICONS = { answer: MessageSquareWarning, work: Cog, notice: BellRing };

export function Failed() {
  const { rows, isLoading, errors, refetch } = useFailures();
  const texts = t().home;
  return (
    <Section title={texts.failed}>
      {isLoading && !rows.length && <Skeleton rows={3} />}
      {rows.length > 0 && (
        <ul class="rows failures">
          {rows.map((row) => <Row key={row.id} row={row} />)}
        </ul>
      )}
      {errors.length > 0 && <LoadFailure error={errors[0]} onRetry={refetch} />}
      {!isLoading && !rows.length && !errors.length && (
        <p class="card row soft">
          <CircleCheck aria-hidden="true" />
          <span class="grow">{texts.nothingFailed}</span>
        </p>
      )}
    </Section>
  );
}

function Row({ row: { kind, title, reason, at, to } }: { row: Failure }) {
  const Icon = ICONS[kind];
  const text = (
    <>
      <strong class="clamp" dir="auto">{title}</strong>
      <span class="soft clip" dir="auto">{reason}</span>
    </>
  );
  return (
    <li>
      <Icon aria-hidden="true" />
      <span class="hidden">{t().home.kinds[kind]}</span>
      {to ? <a class="grow" href={href(to)}>{text}</a> : <span class="grow">{text}</span>}
      <span class="soft">
        <Ago at={at} />
      </span>
    </li>
  );
}
