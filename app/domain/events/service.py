"""Emitting events in the caller's transaction, and reading the log."""

from datetime import datetime

import msgspec

from app.domain.events import queries
from app.domain.events.event import Event
from app.domain.events.schemas import Entry, Span, TraceView
from app.http.errors import NotFound
from app.http.paging import Flat, Page, flat
from app.kit import clock, trace
from app.kit.ids import new_id
from app.kit.texts import as_json
from db.fast import Row, tenant_of
from db.session import Tx


class EventNotFound(NotFound):
    code = "event_not_found"


class TraceNotFound(NotFound):
    code = "trace_not_found"


async def emit(tx: Tx, event: Event, *, tenant_id: str) -> str:
    """Record what happened; it exists exactly if the caller's transaction does."""
    event_id, current = new_id("evt"), trace.current()
    await queries.insert(
        tx,
        tenant_id,
        event_id,
        event.type,
        current.correlation_id,
        current.cause_event_id,
        current.request_id,
        current.actor_id,
        as_json(event),
    )
    return event_id


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


emission = queries.insert_sql


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
    return flat([_entry(row) for row in rows], total, page)


async def entry(tx: Tx, event_id: str) -> Entry:
    row = await queries.one(tx, tenant_of(tx), event_id)
    if row is None:
        raise EventNotFound(f"There is no event {event_id[:64]}")
    return _entry(row)


async def trace_of(tx: Tx, correlation_id: str) -> TraceView:
    """Everything that one cause led to, in order."""
    events, jobs, tools = await queries.trace(tx, tenant_of(tx), correlation_id)
    if not events and not jobs:
        raise TraceNotFound(f"Nothing is known of the correlation id {correlation_id[:64]}")
    spans = [*_request_spans(events), *map(_job_span, jobs), *map(_tool_span, tools)]
    spans.sort(key=lambda span: (span.started_at, span.id))
    moments = [row["created_at"] for row in events]
    for span in spans:
        moments += [span.started_at, _end(span)]
    duration = (max(moments) - min(moments)).total_seconds() * 1000
    return TraceView(correlation_id, [_entry(row) for row in events], spans, round(duration, 1))


def _entry(row: Row) -> Entry:
    return Entry(
        row["id"],
        row["type"],
        row["correlation_id"],
        row["parent_id"],
        msgspec.json.decode(row["data"]),
        row["created_at"],
    )


def _request_spans(events: list[Row]) -> list[Span]:
    """A request is known by the events that it emitted."""
    by_request: dict[str, list[Row]] = {}
    for row in events:
        if row["request_id"]:
            by_request.setdefault(row["request_id"], []).append(row)
    return [
        Span("request", request_id, rows[0]["parent_id"], rows[0]["type"], "completed",
             rows[0]["created_at"], _ms(rows[0]["created_at"], rows[-1]["created_at"]))
        for request_id, rows in by_request.items()
    ]  # fmt: skip


def _job_span(row: Row) -> Span:
    started = row["started_at"] or row["created_at"]
    ended = row["finished_at"] or (clock.now() if row["started_at"] else started)
    return Span(
        "job",
        row["id"],
        row["cause_event_id"],
        row["kind"],
        row["state"],
        started,
        _ms(started, ended),
    )


def _tool_span(row: Row) -> Span:
    """A run of a tool is part of the job that ran it."""
    return Span(
        "tool",
        row["id"],
        row["work_id"],
        row["name"],
        row["status"],
        row["executed_at"],
        float(row["execution_time_ms"]),
    )


def _ms(start: datetime, end: datetime) -> float:
    return round(max(0.0, (end - start).total_seconds() * 1000), 1)


def _end(span: Span) -> datetime:
    return datetime.fromtimestamp(
        span.started_at.timestamp() + span.duration_ms / 1000, span.started_at.tzinfo
    )
