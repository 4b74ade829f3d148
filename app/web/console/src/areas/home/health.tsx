import { useQuery } from "@tanstack/preact-query";
import { CircleAlert, CircleCheck, CircleMinus, CircleX, LoaderCircle } from "lucide-preact";

import { Problem } from "../../api/problem";
import type { Schemas } from "../../api/types";
import { BASE } from "../../base";
import { t } from "../../texts";
import { Section } from "../../ui/page";
import { Badge, type Tone } from "../../ui/small";
import { Loaded } from "../../ui/states";

type Ready = Schemas["Ready"];
type Part = Schemas["PartState"];

const REFRESH_MS = 30_000;
const TONES: Record<Ready["status"], Tone> = { ok: "good", degraded: "warn", unavailable: "bad" };
const ICONS = { ok: CircleCheck, away: CircleX, starting: LoaderCircle, off: CircleMinus };

// The report needs no session: it is on its way while that is fetched.
let early: Promise<Ready> | null = readHealth(null);
early.catch(() => {});

async function readFirst({ signal }: { signal: AbortSignal }): Promise<Ready> {
  const first = early;
  early = null;
  return await first?.catch(() => null) ?? readHealth(signal);
}

// The report of an instance that is not ready is an answer as well.
async function readHealth(signal: AbortSignal | null): Promise<Ready> {
  const response = await fetch(`${BASE}/health/ready`, { signal });
  const report = await response.json().catch(() => null);
  if (report?.parts) return report;
  throw new Problem(response.status, "health", t().home.healthUnknown, {}, null);
}

export function Health() {
  const query = useQuery({
    queryKey: ["health"],
    queryFn: readFirst,
    refetchInterval: REFRESH_MS,
  });
  const texts = t().home;
  return (
    <Section
      title={texts.health}
      actions={query.data && (
        <Badge tone={TONES[query.data.status]}>{texts.states[query.data.status]}</Badge>
      )}
    >
      <Loaded query={query} rows={3}>
        {({ parts, sandbox }) => (
          <ul class="rows parts">
            {Object.entries(parts).map(([name, part]) => (
              <PartRow key={name} name={name} part={part} />
            ))}
            {sandbox === "none" && (
              <li>
                <CircleAlert aria-hidden="true" />
                <span class="grow">
                  <strong>{texts.sandbox}</strong>
                  <span class="soft">{texts.noSandbox}</span>
                </span>
              </li>
            )}
          </ul>
        )}
      </Loaded>
    </Section>
  );
}

function PartRow({ name, part }: { name: string; part: Part }) {
  const texts = t().home;
  const Icon = ICONS[part.state];
  const label = texts.parts[name as keyof typeof texts.parts] ?? name;
  const isWell = part.state === "ok" || part.state === "off";
  const help = isWell ? undefined : texts.help[name as keyof typeof texts.help];
  return (
    <li class={part.state}>
      <Icon aria-hidden="true" />
      <span class="grow">
        <strong>{label}</strong>
        {!isWell && <span dir="auto">{part.detail}</span>}
        {help && <span class="soft">{help}</span>}
      </span>
      <span class="soft">{texts.partStates[part.state]}</span>
    </li>
  );
}
