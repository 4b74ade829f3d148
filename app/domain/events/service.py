"""Emitting events in the caller's transaction, and reading the log."""

from datetime import datetime
from typing import Any

import msgspec

from app.domain.events import queries
from app.domain.events.event import Event
from app.domain.events.schemas import Entry
from app.http.errors import NotFound
from app.http.paging import Flat, Page, flat
from app.kit import trace
from app.kit.ids import new_id
from app.kit.texts import as_json
from db.fast import Row, tenant_of
from db.session import Tx


class EventNotFound(NotFound):
    code = "event_not_found"


_HAPPENED, _TEST = False, True


class Told(msgspec.Struct, frozen=True):
    """An event that was recorded."""

    id: str
    type: str
    correlation_id: str


async def emit(tx: Tx, event: Event, *, tenant_id: str, event_id: str | None = None) -> str:
    """Record what happened; it exists exactly if the caller's transaction does, and so does what
    webhooks and subscriptions want done about it.
    """
    event_id = event_id or new_id("evt")
    columns = _columns(event_id, event.type)
    values = (*columns, as_json(event), _HAPPENED, trace.current().depth)
    routed = await queries.emit(tx, tenant_id, *values)
    if routed is not None:
        tx.wake("events.fan_out", routed)
    return event_id


async def record(tx: Tx, event: Event, *, tenant_id: str) -> None:
    """For the log only: nobody is told."""
    columns = _columns(new_id("evt"), event.type)
    await queries.insert(tx, tenant_id, *columns, as_json(event), _HAPPENED, trace.current().depth)


async def emit_test(
    tx: Tx, event_type: str, data: dict[str, Any], *, tenant_id: str, routed: bool = True
) -> Told:
    """Something that did not happen, marked so. Without `routed` it is for one endpoint only."""
    event_id = new_id("evt")
    values = (*_columns(event_id, event_type), as_json(data), _TEST, trace.current().depth)
    if routed:
        work_id = await queries.emit(tx, tenant_id, *values)
        if work_id is not None:
            tx.wake("events.fan_out", work_id)
    else:
        await queries.insert(tx, tenant_id, *values)
    return Told(event_id, event_type, trace.current().correlation_id)


def _columns(event_id: str, event_type: str) -> tuple[str | None, ...]:
    current = trace.current()
    return (
        event_id,
        event_type,
        current.correlation_id,
        current.cause_event_id,
        current.request_id,
        current.actor_id,
    )


class _Record(msgspec.Struct):
    tenant_id: str
    id: str
    type: str
    correlation_id: str
    parent_id: str | None
    request_id: str | None
    actor_id: str | None
    data: Event


def packed(events: list[Event], *, tenant_id: str) -> str:
    """For an area that records events in the same statement as its rows; `emission` reads it."""
    current = trace.current()
    records = [
        _Record(
            tenant_id,
            new_id("evt"),
            event.type,
            current.correlation_id,
            current.cause_event_id,
            current.request_id,
            current.actor_id,
            event,
        )
        for event in events
    ]
    return as_json(records)


emission, ROUTED, DEEPEST = queries.emission, queries.ROUTED, queries.DEEPEST


def wake(tx: Tx, routed: list[str] | None) -> None:
    """What a statement with an `emission` gave as `routed`."""
    for work_id in routed or ():
        tx.wake("events.fan_out", work_id)


async def forget_conversation(
    tx: Tx, tenant_id: str, agent_id: str, conversation_id: str, since: datetime
) -> None:
    """What was said in a conversation that is deleted goes with it; `since` is when it began."""
    await queries.forget_conversation(tx, tenant_id, agent_id, conversation_id, since)


async def forget_said(tx: Tx, tenant_id: str, agent_ids: list[str], except_jobs: list[str]) -> None:
    """What was said to agents that are deleted goes with them; that these jobs of theirs were
    cancelled by it is still to be told.
    """
    await queries.forget_said(tx, tenant_id, agent_ids, except_jobs)


async def entries(tx: Tx, wanted: queries.Filter, page: Page) -> Flat[Entry]:
    rows, total = await queries.page_of(tx, tenant_of(tx), wanted, page)
    return flat([entry_of(row) for row in rows], total.total, page, exact=total.exact)


async def entry(tx: Tx, event_id: str) -> Entry:
    row = await queries.one(tx, tenant_of(tx), event_id)
    if row is None:
        raise EventNotFound(f"There is no event {event_id[:64]}")
    return entry_of(row)


def entry_of(row: Row) -> Entry:
    return Entry(
        row["id"],
        row["type"],
        row["correlation_id"],
        row["parent_id"],
        msgspec.json.decode(row["data"] or "{}"),
        row["created_at"],
        row["test"],
        omitted=row["data"] is None,
    )
