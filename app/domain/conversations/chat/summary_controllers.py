from typing import Annotated, Final, Literal

import msgspec
from litestar import Controller, delete, get, post
from litestar.di import NamedDependency, Provide
from litestar.params import JSONBody, QueryParameter
from litestar.response import Stream

from app.http.dependencies import Id, Principal, Services, Tx
from app.http.paging import CursorText, From, Limit, Search, To, parse_time
from app.kit import filenames
from app.kit.paging import Keyset

from . import export, summaries
from .export import Format
from .schemas import Source
from .summary_queries import SummaryFilter
from .summary_schemas import (
    ConversationSummary,
    ReadAllConversations,
    ReadConversation,
    ReadUntil,
)

AgentId = Annotated[
    str | None, QueryParameter(max_length=64, description="Only conversations with this agent")
]
OfSource = Annotated[
    Source | None,
    QueryParameter(description="Only conversations from here; without it, no previews"),
]
UserId = Annotated[
    str | None,
    QueryParameter(max_length=64, description="Only those of this user or service key"),
]
VisitorId = Annotated[
    str | None,
    QueryParameter(
        max_length=200,
        description="Only those of this visitor: the id in `visitor`, as the site names them",
    ),
]
OfState = Annotated[
    Literal["active", "ended"] | None,
    QueryParameter(description="Only conversations in this state"),
]
Rated = Annotated[
    Literal["up", "down", "any"] | None,
    QueryParameter(description="Only those with an answer that somebody rated like this"),
]
Failed = Annotated[
    bool | None, QueryParameter(description="Only those with, or without, an answer that failed")
]
Unread = Annotated[
    bool | None, QueryParameter(description="Only those that you have not read, or have read")
]


FileFormat = Annotated[
    Format,
    QueryParameter(name="format", description="A line per conversation, or a row per message"),
]


class _People(msgspec.Struct, frozen=True):
    """Whose conversations a list has."""

    agent_id: str | None
    source: Source | None
    user_id: str | None
    visitor: str | None


def _provide_people(
    agent_id: AgentId = None,
    source: OfSource = None,
    user_id: UserId = None,
    visitor: VisitorId = None,
) -> _People:
    return _People(agent_id, source, user_id, visitor)


def _provide_filters(
    people: NamedDependency[_People],
    status: OfState = None,
    rating: Rated = None,
    failed: Failed = None,
    unread: Unread = None,
    search: Search = None,
    since: From = None,
    until: To = None,
) -> SummaryFilter:
    return SummaryFilter(
        **msgspec.structs.asdict(people),
        status=status,
        rating=rating,
        failed=failed,
        unread=unread,
        search=search,
        since=parse_time("from", since),
        until=parse_time("to", until),
    )


_MEDIA_TYPES: Final = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
_FILTERS = {
    "people": Provide(_provide_people, sync_to_thread=False),
    "filters": Provide(_provide_filters, sync_to_thread=False),
}
Filters = NamedDependency[SummaryFilter]


class ConversationSummaryController(Controller):
    path = "/api/v1/conversations"
    tags = ["Conversations"]

    @get(summary="List conversations", signed_in=True, checks_agent=True, dependencies=_FILTERS)
    async def list_all_conversations(
        self,
        tx: Tx,
        principal: Principal,
        filters: Filters,
        limit: Limit = 20,
        cursor: CursorText = None,
    ) -> Keyset[ConversationSummary]:
        """Your own conversations with all agents; with conversations:read, everybody's. The newest
        activity comes first. A conversation that goes on while you read the pages moves to the
        first one; none comes twice. `from` and `to` limit the time of the last message, and
        `search` looks in titles. What happened before your first list does not count as unread. A
        service key for certain agents lists only conversations with them; for another
        `agent_id`: 403.
        """
        return await summaries.list_page(tx, principal, filters, cursor, limit)

    @get(
        "/export",
        summary="Export conversations",
        needs="conversations:read",
        cost="execute",
        checks_agent=True,
        media_type="application/x-ndjson",
        dependencies=_FILTERS,
    )
    async def export_conversations(
        self,
        services: Services,
        principal: Principal,
        filters: Filters,
        file_format: FileFormat = "jsonl",
    ) -> Stream:
        """The conversations of the list with these filters, the newest activity first, with their
        messages, calls of tools, sources and ratings. `jsonl` has a conversation per line, and
        `csv` a message per row; both are UTF-8. In CSV, a text that a spreadsheet would read as a
        formula starts with an apostrophe. A conversation that goes on before its turn in the export
        moves to the beginning of the list, and is missing: export it by `from`. A tenant has at
        most 2 exports at the same time: 429 `rate_limited`, with `Retry-After`.
        """
        parts = await export.start(services, principal, filters, file_format)
        name = f"conversations.{file_format}"
        headers = {
            "content-disposition": filenames.as_attachment(name),
            "content-type": _MEDIA_TYPES[file_format],
        }
        return Stream(parts, headers=headers)

    @post(
        "/read-all",
        summary="Mark all conversations as read",
        signed_in=True,
        status_code=200,
    )
    async def read_all_conversations(
        self, tx: Tx, principal: Principal, data: JSONBody[ReadAllConversations]
    ) -> ReadUntil:
        """For yourself alone, with all agents and whatever filter you list by."""
        return await summaries.mark_all(tx, principal, data.until)

    @post(
        "/{conversation_id:str}/read",
        summary="Mark a conversation as read",
        signed_in=True,
        status_code=200,
    )
    async def read_conversation(
        self, tx: Tx, principal: Principal, conversation_id: Id
    ) -> ReadConversation:
        """For yourself alone, up to its last message. A later message makes it unread again."""
        return await summaries.mark(tx, principal, conversation_id, is_unread=False)

    @delete(
        "/{conversation_id:str}/read",
        summary="Mark a conversation as unread",
        signed_in=True,
        status_code=200,
    )
    async def unread_conversation(
        self, tx: Tx, principal: Principal, conversation_id: Id
    ) -> ReadConversation:
        return await summaries.mark(tx, principal, conversation_id, is_unread=True)
