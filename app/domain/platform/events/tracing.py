"""Traces: the events of one correlation id, and the spans of requests, jobs and areas."""

from datetime import datetime, timedelta

from app.domain.area import Areas, Span
from app.kit import clock, ids
from app.security.principal import Principal
from db import ledger
from db.fast import Row, tenant_of
from db.session import Tx

from . import queries
from .errors import TraceNotFound
from .schemas import TraceView
from .service import MAX_SPANS, to_entry

_FIRST_ERROR_STATUS = 400


async def get_trace(tx: Tx, areas: Areas, principal: Principal, correlation_id: str) -> TraceView:
    """Returns events and spans in order: a cause is before its effects."""
    tenant = tenant_of(tx)
    events = await queries.list_by_correlation(tx, tenant, correlation_id, MAX_SPANS)
    work = await ledger.list_by_correlation(tx, tenant, correlation_id, MAX_SPANS)
    if not events and not work:
        raise TraceNotFound(f"There is no trace with the correlation id {correlation_id[:64]}")
    requests = await queries.list_requests(tx, tenant, correlation_id, MAX_SPANS)
    jobs = [_job_span(row, areas) for row in work if not _was_needless(row)]
    outer = [*_request_spans(events, requests), *jobs]
    spans = list(outer)
    for source, permissions in areas.span_sources:
        found = await source(tx, tenant, correlation_id, outer)
        if not all(map(principal.may, permissions)):
            _hide_content(found)
        spans += found
    spans.sort(key=lambda span: (span.started_at, span.id))
    moments = [row["created_at"] for row in events]
    for span in spans:
        moments += [span.started_at, end_of(span)]
    entries = [to_entry(row) for row in events]
    return TraceView(correlation_id, entries, spans, clock.milliseconds(min(moments), max(moments)))


def _hide_content(spans: list[Span]) -> None:
    for span in spans:
        span.input = span.output = span.error = None


def _request_spans(events: list[Row], requests: list[Row]) -> list[Span]:
    """Returns a span for each request that emitted events: from its start to its end or, while it
    runs, from the start of its first transaction to its last event.
    """
    finished = {row["request_id"]: row for row in requests}
    by_request: dict[str, list[Row]] = {}
    for row in events:
        if row["request_id"]:
            by_request.setdefault(row["request_id"], []).append(row)
    spans = []
    for request_id, rows in by_request.items():
        spans.append(_request_span(rows, finished.get(request_id)))
    return spans


def _request_span(events: list[Row], finished: Row | None) -> Span:
    first = events[0]
    started, ended = first["created_at"], _emitted_at(events[-1])
    name, status = None, "completed"
    if finished is not None:
        started, ended, name = finished["started_at"], finished["ended_at"], finished["name"]
        if (finished["status_code"] or 0) >= _FIRST_ERROR_STATUS:
            status = "failed"
    ids, duration_ms = (first["request_id"], first["parent_id"]), clock.milliseconds(started, ended)
    return Span("request", *ids, name or first["type"], status, started, duration_ms)


def _emitted_at(row: Row) -> datetime:
    moment: datetime = ids.moment_of(row["id"]) or row["created_at"]
    return moment


def _was_needless(work: Row) -> bool:
    """Such as the end of a time limit that nothing exceeded."""
    return work["state"] == "cancelled" and work["started_at"] is None


def _job_span(row: Row, areas: Areas) -> Span:
    kind = areas.work_kinds.get(row["kind"])
    created, started = row["created_at"], row["started_at"] or row["created_at"]
    ended = row["finished_at"] or (clock.now() if row["started_at"] else started)
    return Span(
        "job",
        row["id"],
        # Work in bulk is an attempt at the row that it refers to, such as a delivery.
        row["ref_id"] if kind is not None and kind.in_bulk else row["cause_event_id"],
        row["kind"],
        row["state"],
        started,
        clock.milliseconds(started, ended),
        waited_ms=clock.milliseconds(created, started) if row["started_at"] else None,
        # For its next attempt.
        is_waiting=row["state"] == "pending",
        error=row["last_error"] if row["state"] != "done" else None,
    )


def end_of(span: Span) -> datetime:
    return span.started_at + timedelta(milliseconds=span.duration_ms)
