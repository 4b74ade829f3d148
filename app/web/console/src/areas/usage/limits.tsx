import { toCurl } from "../../api/client";
import { useRead } from "../../api/queries";
import type { Schemas } from "../../api/types";
import { t } from "../../texts";
import { CopyButton } from "../../ui/copy";
import { formatAgo, formatNumber, formatSize, formatTime } from "../../ui/format";
import { Meter } from "../../ui/meter";
import { Card, Section } from "../../ui/page";
import { Badge } from "../../ui/small";
import { Loaded } from "../../ui/states";

type Report = Schemas["LimitsReport"];
type Window = Schemas["WindowLimit"];
type Counted = Schemas["CountedLimit"];

const PATH = "/api/v1/usage/limits";
const WINDOWS = ["minute", "hour", "day"] as const;
const VISITORS = ["embed", "forms", "incoming"] as const;

export function Limits() {
  const query = useRead(PATH, {}, { refetchInterval: 15_000 });
  return <Loaded query={query}>{(report) => <Headroom report={report} />}</Loaded>;
}

function Headroom({ report }: { report: Report }) {
  const texts = t().usage;
  return (
    <>
      <div class="bar">
        <p class="row">
          {texts.plan} <Badge tone="accent">{report.plan}</Badge>
        </p>
        <CopyButton text={toCurl("GET", PATH)} label={t().common.copyCurl} />
      </div>
      <Section title={texts.requestLimits} about={texts.requestLimitsAbout}>
        <Card>
          {WINDOWS.map((key) => (
            <WindowMeter key={key} label={texts.windows[key]} limit={report[key]} />
          ))}
        </Card>
      </Section>
      <Section title={texts.stored}>
        <Card>
          <Storage report={report} />
          <CountedMeter label={texts.dataRows} limit={report.data_rows} />
        </Card>
      </Section>
      <Section title={texts.workflows}>
        <Card>
          <Workflows limits={report.workflow_executions} />
        </Card>
      </Section>
      <Section title={texts.visitors} about={texts.visitorsAbout}>
        <Card>
          {VISITORS.map((kind) => (
            <Visitors
              key={kind}
              label={texts.visitorKinds[kind]}
              limits={report.visitors[kind]}
            />
          ))}
        </Card>
      </Section>
      <Budgets report={report} />
    </>
  );
}

function Visitors({ label, limits }: { label: string; limits: Schemas["VisitorLimits"] }) {
  const texts = t().usage;
  const limited = WINDOWS.filter((key) => limits[key].limit !== null);
  if (!limited.length) return <Unlimited label={label} />;
  return (
    <>
      {limited.map((key) => (
        <WindowMeter
          key={key}
          label={texts.visitorWindow(label, texts.windows[key])}
          limit={limits[key]}
        />
      ))}
    </>
  );
}

function WindowMeter({ label, limit }: { label: string; limit: Window }) {
  const texts = t().usage;
  if (limit.limit === null) return <Unlimited label={label} />;
  if (limit.remaining === null) return <Unlimited label={label} text={texts.notKnown} />;
  const used = limit.limit - limit.remaining;
  // That of the minute has come before it is read.
  const isSoon = limit.reset === null || limit.reset * 1000 - Date.now() < 60_000;
  const reset = isSoon ? "" : new Date((limit.reset ?? 0) * 1000).toISOString();
  return (
    <Meter label={label} used={used} limit={limit.limit}>
      {texts.usedOf(formatNumber(used), formatNumber(limit.limit))}
      {reset && (
        <time dateTime={reset} title={formatTime(reset)}>
          {` · ${texts.reset(formatAgo(reset))}`}
        </time>
      )}
    </Meter>
  );
}

function CountedMeter({ label, limit }: { label: string; limit: Counted }) {
  const texts = t().usage;
  const used = formatNumber(limit.used);
  if (limit.limit === null) return <Unlimited label={label} text={texts.usedUnlimited(used)} />;
  return (
    <Meter label={label} used={limit.used} limit={limit.limit}>
      {texts.usedOf(used, formatNumber(limit.limit))}
    </Meter>
  );
}

function Unlimited({ label, text }: { label: string; text?: string }) {
  return (
    <div class="meter">
      <div>
        <span dir="auto">{label}</span>
        <span class="soft">{text ?? t().usage.unlimited}</span>
      </div>
    </div>
  );
}

function Storage({ report: { storage } }: { report: Report }) {
  const texts = t().usage;
  const used = formatSize(storage.used_bytes);
  const kinds = Object.entries(storage.by_kind)
    .filter(([, bytes]) => bytes)
    .sort(([, one], [, other]) => other - one);
  return (
    <>
      {storage.limit_bytes === null
        ? <Unlimited label={texts.storage} text={texts.usedUnlimited(used)} />
        : (
          <Meter label={texts.storage} used={storage.used_bytes} limit={storage.limit_bytes}>
            {texts.usedOf(used, formatSize(storage.limit_bytes))}
          </Meter>
        )}
      {kinds.length > 0 && (
        <p class="meter soft">
          {kinds.map(([kind, bytes]) =>
            `${texts.storageKinds[kind as keyof typeof texts.storageKinds] ?? kind}: ${
              formatSize(bytes)
            }`
          ).join(" · ")}
        </p>
      )}
    </>
  );
}

function Workflows({ limits }: { limits: Report["workflow_executions"] }) {
  const texts = t().usage;
  const { per_minute, concurrent } = limits;
  return (
    <>
      <Meter
        label={texts.starts}
        used={per_minute.limit - per_minute.remaining}
        limit={per_minute.limit}
      >
        {texts.usedOf(
          formatNumber(per_minute.limit - per_minute.remaining),
          formatNumber(per_minute.limit),
        )}
      </Meter>
      <Meter label={texts.concurrent} used={concurrent.running} limit={concurrent.limit}>
        {texts.usedOf(formatNumber(concurrent.running), formatNumber(concurrent.limit))}
      </Meter>
    </>
  );
}

function Budgets({ report }: { report: Report }) {
  const texts = t().usage;
  return (
    <Section
      title={texts.budgets}
      about={report.embed_keys.length ? texts.budgetsAbout(formatAgo(report.budgets_reset)) : ""}
    >
      {report.embed_keys.length
        ? (
          <Card>
            {report.embed_keys.flatMap(({ embed_key_id, name, messages, tokens }) =>
              ([["messages", messages], ["tokens", tokens]] as const)
                .filter(([, limit]) => limit.limit !== null)
                .map(([kind, limit]) => (
                  <CountedMeter
                    key={embed_key_id + kind}
                    label={texts.budget(name, texts.budgetKinds[kind])}
                    limit={limit}
                  />
                ))
            )}
          </Card>
        )
        : (
          <Card>
            <p class="soft">{texts.noBudgets}</p>
          </Card>
        )}
    </Section>
  );
}
