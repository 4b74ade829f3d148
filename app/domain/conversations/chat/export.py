"""Exports conversations with their messages: batch by batch, each with a transaction of its own."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from typing import Any, Final, Literal

import msgspec

from app.jobs.threads import TenantThreads
from app.kit import csv_cells, csv_export
from app.kit.csv_export import ExportLimit
from app.kit.cursors import Cursor
from app.security.principal import Principal
from app.services import Services
from db.fast import Row

from . import export_queries, summary_queries
from .summary_queries import SummaryFilter
from .summary_schemas import ConversationSummary

Format = Literal["jsonl", "csv"]
_CONVERSATIONS: Final = 20
# What a list shows of them is part of the messages, or the caller's own.
_LEFT_OUT: Final = ("last_message", "unread")
_PLAIN: Final = ("id", "role", "content", "status", "created_at")
_NESTED: Final = ("error", "sources", "attachments", "tool_calls", "ratings")
COLUMNS: Final = (
    *("conversation_id", "agent_id", "agent_name", "user_id", "user_name"),
    *("visitor_id", "visitor_name", "visitor_email", "source", "title", "status"),
    *("created_at", "last_message_at", "message_id", "role", "content", "message_status"),
    *("message_created_at", *_NESTED),
)


class _Part(msgspec.Struct, frozen=True):
    """Messages of a conversation that follow each other. Only the last part may have none."""

    conversation: ConversationSummary
    messages: list[Row]
    is_first: bool
    is_last: bool


async def start(
    services: Services, principal: Principal, filters: SummaryFilter, file_format: Format
) -> AsyncIterator[bytes]:
    """Returns the parts of the file. Raises RateLimited while the tenant has too many exports."""
    if filters.agent_id is not None:
        principal.require_agent(filters.agent_id)
    parts = _stream(services, principal, filters, file_format)
    return await csv_export.start(services.get(ExportLimit), principal.home, parts)


async def _stream(
    services: Services, principal: Principal, filters: SummaryFilter, file_format: Format
) -> AsyncGenerator[bytes]:
    threads, encode = services.get(TenantThreads), _ENCODERS[file_format]
    after: Cursor | None = None
    page = await _read_page(services, principal, filters, after)
    yield csv_cells.encode_rows([list(COLUMNS)]) if file_format == "csv" else b""
    while page:
        after = Cursor(page[-1].last_message_at, page[-1].id)
        is_last = len(page) < _CONVERSATIONS
        async for part in _read_messages(services, principal, page):
            yield await threads.run(principal.home, encode, part)
        if is_last:
            return
        page = await _read_page(services, principal, filters, after)


async def _read_page(
    services: Services, principal: Principal, filters: SummaryFilter, after: Cursor | None
) -> list[ConversationSummary]:
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        return await summary_queries.list_after(tx, principal, filters, after, _CONVERSATIONS)


async def _read_messages(
    services: Services, principal: Principal, page: list[ConversationSummary]
) -> AsyncGenerator[list[_Part]]:
    """Yields the parts of these conversations, as many at a time as one batch of messages has."""
    remaining, seq = page, 0
    while True:
        ids = [conversation.id for conversation in remaining]
        async with services.db.tx(principal.scope, autocommit=True) as tx:
            rows = await export_queries.list_messages(tx, ids, seq)
        end = ids.index(rows[-1]["conversation_id"]) if rows else len(ids)
        yield _divide(remaining[: end + 1], rows, has_begun=seq > 0)
        if not rows:
            return
        remaining, seq = remaining[end:], rows[-1]["seq"]


def _divide(
    conversations: list[ConversationSummary], rows: list[Row], *, has_begun: bool
) -> list[_Part]:
    """Divides a batch by conversations. The last one that has messages may have more of them."""
    messages: dict[str, list[Row]] = {conversation.id: [] for conversation in conversations}
    for row in rows:
        messages[row["conversation_id"]].append(row)
    unfinished = rows[-1]["conversation_id"] if rows else None
    return [
        _Part(item, messages[item.id], number > 0 or not has_begun, item.id != unfinished)
        for number, item in enumerate(conversations)
    ]


def _encode_jsonl(parts: list[_Part]) -> bytes:
    return b"".join(map(_encode_part, parts))


def _encode_part(part: _Part) -> bytes:
    """Encodes a line, or a piece of one: a conversation may have more messages than fit."""
    begin = b"," if part.messages else b""
    if part.is_first:
        fields = msgspec.structs.asdict(part.conversation)
        shown = {name: value for name, value in fields.items() if name not in _LEFT_OUT}
        begin = msgspec.json.encode(shown)[:-1] + b',"messages":['
    messages = b",".join(msgspec.json.encode(_to_object(row)) for row in part.messages)
    return begin + messages + (b"]}\n" if part.is_last else b"")


def _to_object(row: Row) -> dict[str, Any]:
    nested = {name: msgspec.Raw((row[name] or "null").encode()) for name in _NESTED}
    return {name: row[name] for name in _PLAIN} | nested


def _encode_csv(parts: list[_Part]) -> bytes:
    return csv_cells.encode_rows(row for part in parts for row in _list_rows(part))


def _list_rows(part: _Part) -> Iterator[list[str]]:
    """Yields a row per message. A conversation without messages has one row."""
    conversation, visitor = part.conversation, part.conversation.visitor
    people = ("", "", "") if visitor is None else (visitor.id, visitor.name, visitor.email)
    begin = (
        *(conversation.id, conversation.agent_id, conversation.agent_name),
        *(conversation.user_id, conversation.user_name, *people),
        *(conversation.source, conversation.title, conversation.status),
        *(conversation.created_at.isoformat(), conversation.last_message_at.isoformat()),
    )
    if part.is_first and part.is_last and not part.messages:
        yield _escape(*begin, *[""] * (len(COLUMNS) - len(begin)))
    for row in part.messages:
        message = (row["id"], row["role"], row["content"], row["status"])
        nested = [row[name] for name in _NESTED]
        yield _escape(*begin, *message, row["created_at"].isoformat(), *nested)


def _escape(*cells: str | None) -> list[str]:
    return [csv_cells.escape_formula(cell or "") for cell in cells]


_ENCODERS: Final[dict[Format, Callable[[list[_Part]], bytes]]] = {
    "jsonl": _encode_jsonl,
    "csv": _encode_csv,
}
