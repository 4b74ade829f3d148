// What the model of an answer saw, and what that cost.
import type { ComponentChildren } from "preact";

import { toCurl } from "../api/client";
import { useRead } from "../api/queries";
import { BASE } from "../base";
import type { Schemas } from "../api/types";
import { t } from "../texts";
import { LongText } from "./content";
import { CopyButton } from "./copy";
import { Dialog } from "./dialog";
import { formatCost, formatDuration, formatNumber } from "./format";
import { Facts } from "./page";
import { Empty, Loaded } from "./states";
import { SourceList } from "./turn_parts";

type Context = Schemas["TurnContext"];

const PATH = "/api/v1/conversations/{conversation_id}/messages/{message_id}/context";

export function TurnContext(
  { conversationId, messageId, onClose }: {
    conversationId: string;
    messageId: string;
    onClose: () => void;
  },
) {
  const path = { conversation_id: conversationId, message_id: messageId };
  const query = useRead(PATH, { path });
  return (
    <Dialog
      title={t().turns.title}
      isDrawer
      onClose={onClose}
      actions={<CopyButton text={toCurl("GET", PATH, { path })} label={t().common.copyCurl} />}
    >
      <Loaded query={query} rows={4}>{(context) => <Seen context={context} />}</Loaded>
    </Dialog>
  );
}

function Seen({ context }: { context: Context }) {
  const texts = t().turns;
  const { system_message: system, passages, tools } = context;
  const facts = factsOf(context);
  if (!facts.length && !system) {
    return <Empty title={texts.nothing}>{texts.nothingAbout}</Empty>;
  }
  return (
    <>
      <Facts rows={facts} />
      {context.is_truncated && <p class="note warn">{texts.truncated}</p>}
      <h3>{texts.system}</h3>
      {system
        ? <LongText text={system} label={texts.system} />
        : <p class="soft">{texts.notShown}</p>}
      {passages && (
        <>
          <h3>{texts.passages(passages.length)}</h3>
          {passages.length > 0 && <SourceList sources={passages} />}
        </>
      )}
      {tools && (
        <>
          <h3>{texts.tools(tools.length)}</h3>
          <Facts rows={tools.map(({ name, description }) => [name, description])} />
        </>
      )}
    </>
  );
}

function TraceLink({ id }: { id: string }) {
  const address = `${BASE}/trace/${encodeURIComponent(id)}`;
  return <a href={address} target="_blank" rel="noreferrer">{t().turns.openTrace}</a>;
}

// Only what is known: it depends on the role, and on what the agent logs.
function factsOf(context: Context): [string, ComponentChildren][] {
  const texts = t().turns;
  const { model, parameters, usage, version } = context;
  const isKnown = (value: number | null | undefined): value is number => typeof value === "number";
  const rows: [string, ComponentChildren | false][] = [
    [texts.model, model && <code key="model" dir="auto">{model}</code>],
    [texts.version, isKnown(version) && formatNumber(version)],
    [texts.temperature, parameters && formatNumber(parameters.temperature)],
    [texts.maxTokens, parameters && formatNumber(parameters.max_tokens)],
    [texts.history, isKnown(context.history_messages) && formatNumber(context.history_messages)],
    [
      texts.tokens,
      usage && texts.tokensBoth(
        formatNumber(usage.prompt_tokens),
        formatNumber(usage.completion_tokens),
      ),
    ],
    [texts.cost, isKnown(context.cost_usd) && formatCost(context.cost_usd)],
    [texts.firstToken, isKnown(context.first_token_ms) && formatDuration(context.first_token_ms)],
    [texts.time, isKnown(context.response_time_ms) && formatDuration(context.response_time_ms)],
    [texts.trace, context.correlation_id && <TraceLink key="trace" id={context.correlation_id} />],
  ];
  return rows.filter(([, value]) => value);
}
