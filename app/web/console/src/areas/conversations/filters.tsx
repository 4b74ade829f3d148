// The filters of the list, which are in its address.
import { SlidersHorizontal, X } from "lucide-preact";
import { useState } from "preact/hooks";

import { may } from "../../api/session";
import type { Query, Schemas } from "../../api/types";
import { t } from "../../texts";
import { Button } from "../../ui/button";
import { DateFilter, momentOf } from "../../ui/date_filter";
import { type Choice, Filter, SearchField } from "../../ui/field";
import { RecordFilter } from "../../ui/record_picker";

export const PATH = "/api/v1/conversations";
export type Conversation = Schemas["ConversationSummary"];
type ListQuery = Query<typeof PATH>;

const NAMES = [
  "agent_id",
  "source",
  "user_id",
  "visitor",
  "status",
  "rating",
  "failed",
  "unread",
  "search",
  "from",
  "to",
] as const;
export type Values = { [Name in typeof NAMES[number]]?: string | undefined };

// Of all names in an address or a saved view, those of filters that have a value.
export function pickFilters(values: Record<string, string | undefined>): Record<string, string> {
  const pairs = NAMES.map((name) => [name, values[name]]).filter(([, value]) => value);
  return Object.fromEntries(pairs);
}

// Removes every filter that `values` does not set.
export function replaceFilters(values: Values): Values {
  return { ...Object.fromEntries(NAMES.map((name) => [name, undefined])), ...values };
}

export function toQuery(values: Values): ListQuery {
  const { from, to, failed, unread, ...others } = pickFilters(values);
  return {
    ...others,
    failed: toBoolean(failed),
    unread: toBoolean(unread),
    from: momentOf(from),
    to: momentOf(to, true),
  };
}

function toBoolean(text: string | undefined): boolean | undefined {
  return text === undefined ? undefined : text === "true";
}

interface BarProps {
  values: Values;
  onChange: (changes: Values) => void;
}

const RARE = ["user_id", "failed", "status", "from", "to"] as const;

export function FilterBar({ values, onChange }: BarProps) {
  const [isOpen, setOpen] = useState(RARE.some((name) => values[name]));
  const texts = t().conversations;
  return (
    <div class="filters">
      <SearchField
        label={texts.search}
        value={values.search ?? ""}
        onInput={(search) => onChange({ search })}
      />
      <AgentFilter values={values} onChange={onChange} />
      <Choices name="source" choices={Object.entries(texts.sources)} {...{ values, onChange }} />
      <Choices name="rating" choices={Object.entries(texts.ratings)} {...{ values, onChange }} />
      <Choices name="unread" choices={Object.entries(texts.reads)} {...{ values, onChange }} />
      <Button icon={SlidersHorizontal} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {texts.moreFilters}
      </Button>
      <PersonChips values={values} onChange={onChange} />
      {isOpen && <RareFilters values={values} onChange={onChange} />}
    </div>
  );
}

function RareFilters({ values, onChange }: BarProps) {
  const texts = t().conversations;
  return (
    <div class="filters rare">
      <UserFilter values={values} onChange={onChange} />
      <Choices name="failed" choices={Object.entries(texts.failures)} {...{ values, onChange }} />
      <Choices name="status" choices={Object.entries(texts.statuses)} {...{ values, onChange }} />
      <DateFilter
        label={texts.from}
        value={values.from}
        onChange={(from) => onChange({ from })}
      />
      <DateFilter label={texts.to} value={values.to} onChange={(to) => onChange({ to })} />
    </div>
  );
}

function Choices(
  { name, choices, values, onChange }: BarProps & {
    name: "source" | "rating" | "failed" | "unread" | "status";
    choices: Choice[];
  },
) {
  return (
    <Filter
      label={t().conversations.filters[name]}
      value={values[name]}
      choices={choices}
      onChange={(value) => onChange({ [name]: value })}
    />
  );
}

function AgentFilter({ values, onChange }: BarProps) {
  if (!may("agents:read")) return null;
  return (
    <RecordFilter
      kind="agent"
      label={t().conversations.agent}
      value={values.agent_id}
      onChange={(agent_id) => onChange({ agent_id })}
    />
  );
}

function UserFilter({ values, onChange }: BarProps) {
  if (!may("admin:users")) return null;
  return (
    <RecordFilter
      kind="user"
      label={t().conversations.user}
      value={values.user_id}
      onChange={(user_id) => onChange({ user_id })}
    />
  );
}

// Filters that a conversation's details set, and that have no control of their own.
function PersonChips({ values, onChange }: BarProps) {
  const texts = t().conversations;
  const chips = [
    values.visitor &&
    ([texts.ofVisitor(values.visitor), () => onChange({ visitor: undefined })] as const),
    values.user_id && !may("admin:users") &&
    ([texts.ofUser(values.user_id), () => onChange({ user_id: undefined })] as const),
  ];
  return (
    <>
      {chips.map((chip) =>
        chip && (
          <Button key={chip[0]} icon={X} onClick={chip[1]}>
            <span class="clip" dir="auto">{chip[0]}</span>
          </Button>
        )
      )}
    </>
  );
}
