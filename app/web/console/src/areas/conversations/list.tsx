// All conversations, the newest activity first.
import { CheckCheck, Mail, MailOpen, MessagesSquare } from "lucide-preact";

import { useChange, useKeyset } from "../../api/queries";
import { may } from "../../api/session";
import { t } from "../../texts";
import { Button, IconButton, LinkButton } from "../../ui/button";
import { ListTable } from "../../ui/list";
import { Page } from "../../ui/page";
import { Empty, Problem } from "../../ui/states";
import { useDelayed, useFilters } from "../../ui/state";
import { columns } from "./columns";
import { failure, leaving } from "./deletion";
import { ExportMenu } from "./export";
import { AgentFigures } from "./figures";
import {
  type Conversation,
  FilterBar,
  PATH,
  pickFilters,
  replaceFilters,
  toQuery,
} from "./filters";
import { markAllAsRead, markAsRead, markAsUnread } from "./reads";
import { Views } from "./views";

export function ConversationList() {
  const [filters, setFilters] = useFilters();
  const query = toQuery(useDelayed(filters));
  const list = useKeyset(PATH, { query }, (row) => row.last_message_at);
  const readAll = useChange(markAllAsRead);
  const isFiltered = Object.keys(pickFilters(filters)).length > 0;
  const texts = t().conversations;
  return (
    <Page
      title={t().rail.conversations}
      actions={
        <>
          {may("conversations:read") && <ExportMenu query={query} />}
          <Button
            icon={CheckCheck}
            busy={readAll.isPending}
            onClick={() => readAll.mutate(undefined)}
          >
            {texts.readAll}
          </Button>
        </>
      }
      isWide
    >
      <Views filters={filters} setFilters={setFilters} />
      <FilterBar values={filters} onChange={setFilters} />
      {filters.agent_id && may("usage:read") && <AgentFigures id={filters.agent_id} />}
      <Problem error={readAll.error ?? failure.value} />
      <ListTable
        label={t().rail.conversations}
        list={{ ...list, rows: list.rows?.filter(({ id }) => !leaving.value.has(id)) }}
        columns={columns(Boolean(filters.agent_id))}
        keyOf={({ id }) => id}
        linkOf={({ id }) => `/conversations/${id}`}
        isStrong={({ unread }) => unread}
        actionsOf={(row) => <ReadButton row={row} />}
        onClear={isFiltered
          ? () => setFilters({ ...replaceFilters({}), view: undefined })
          : undefined}
        empty={<NoConversations />}
      />
    </Page>
  );
}

function NoConversations() {
  const texts = t().conversations;
  return (
    <Empty
      icon={MessagesSquare}
      title={texts.emptyTitle}
      action={may("agents:read") &&
        <LinkButton kind="primary" to="/agents">{texts.toAgents}</LinkButton>}
    >
      {texts.emptyAbout}
    </Empty>
  );
}

function ReadButton({ row: { id, unread } }: { row: Conversation }) {
  const texts = t().conversations;
  const change = useChange(() => (unread ? markAsRead(id) : markAsUnread(id)));
  return (
    <IconButton
      icon={unread ? MailOpen : Mail}
      label={unread ? texts.markRead : texts.markUnread}
      onClick={() => change.mutate(undefined)}
    />
  );
}
