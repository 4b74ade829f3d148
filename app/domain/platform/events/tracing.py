"""Traces: the events of one correlation id, and the spans of requests, jobs and areas."""

from datetime import datetime, timedelta

from app.domain.area import Areas, Span
from app.kit import clock, ids
from db import ledger
from db.fast import Row, tenant_of
from db.session import Tx

from . import queries
from .errors import TraceNotFound
from .schemas import TraceView
from .service import MAX_SPANS, to_entry


async def get_trace(tx: Tx, areas: Areas, correlation_id: str) -> TraceView:
    """Returns events and spans in order: a cause is before its effects."""
    tenant = tenant_of(tx)
    events = await queries.list_by_correlation(tx, tenant, correlation_id, MAX_SPANS)
    work = await ledger.list_by_correlation(tx, tenant, correlation_id, MAX_SPANS)
    if not events and not work:
        raise TraceNotFound(f"There is no trace with the correlation id {correlation_id[:64]}")
    requests = await queries.list_requests(tx, tenant, correlation_id, MAX_SPANS)
    outer = [*_request_spans(events, requests), *(_job_span(row, areas) for row in work)]
    spans = list(outer)
    for source in areas.span_sources:
        spans += await source(tx, tenant, correlation_id, outer)
    spans.sort(key=lambda span: (span.started_at, span.id))
    moments = [row["created_at"] for row in events]
    for span in spans:
        moments += [span.started_at, end_of(span)]
    entries = [to_entry(row) for row in events]
    return TraceView(correlation_id, entries, spans, clock.milliseconds(min(moments), max(moments)))


def _request_spans(events: list[Row], requests: list[Row]) -> list[Span]:
    """Returns a span for each request that emitted events: from its start to its end or, while it
    runs, from the start of its first transaction to its last event.
    """
    bounds = {row["request_id"]: (row["started_at"], row["ended_at"]) for row in requests}
    by_request: dict[str, list[Row]] = {}
    for row in events:
        if row["request_id"]:
            by_request.setdefault(row["request_id"], []).append(row)
    spans = []
    for request_id, rows in by_request.items():
        from_events = (rows[0]["created_at"], _emitted_at(rows[-1]))
        started, ended = bounds.get(request_id, from_events)
        ids = (request_id, rows[0]["parent_id"])
        duration_ms = clock.milliseconds(started, ended)
        spans.append(Span("request", *ids, rows[0]["type"], "completed", started, duration_ms))
    return spans


def _emitted_at(row: Row) -> datetime:
    moment: datetime = ids.moment_of(row["id"]) or row["created_at"]
    return moment


def _job_span(row: Row, areas: Areas) -> Span:
    kind = areas.work_kinds.get(row["kind"])
    started = row["started_at"] or row["created_at"]
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
    )


def end_of(span: Span) -> datetime:
    return span.started_at + timedelta(milliseconds=span.duration_ms)
