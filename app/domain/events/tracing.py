"""Everything that one cause led to: the events, and what ran for how long."""

from datetime import datetime, timedelta

from app.domain.events import queries
from app.domain.events.schemas import Span, TraceView
from app.domain.events.service import entry_of
from app.http.errors import NotFound
from app.kit import clock, ids
from db.fast import Row, tenant_of
from db.session import Tx


class TraceNotFound(NotFound):
    code = "trace_not_found"


async def trace_of(tx: Tx, correlation_id: str) -> TraceView:
    """In order: a cause stands before what it led to."""
    found = await queries.trace(tx, tenant_of(tx), correlation_id)
    if not found.events and not found.jobs:
        raise TraceNotFound(f"Nothing is known of the correlation id {correlation_id[:64]}")
    requests, jobs = _request_spans(found.events), [_job_span(row) for row in found.jobs]
    spans = [
        *requests,
        *jobs,
        *(_model_span(row, requests, jobs) for row in found.models),
        *map(_tool_span, found.tools),
        *map(_delivery_span, found.deliveries),
    ]
    spans.sort(key=lambda span: (span.started_at, span.id))
    moments = [row["created_at"] for row in found.events]
    for span in spans:
        moments += [span.started_at, _end(span)]
    duration = (max(moments) - min(moments)).total_seconds() * 1000
    entries = [entry_of(row) for row in found.events]
    return TraceView(correlation_id, entries, spans, round(duration, 1))


def _request_spans(events: list[Row]) -> list[Span]:
    """A request is known by the events that it emitted: it took from the first transaction's
    beginning to the last event, at least.
    """
    by_request: dict[str, list[Row]] = {}
    for row in events:
        if row["request_id"]:
            by_request.setdefault(row["request_id"], []).append(row)
    return [
        Span("request", request_id, rows[0]["parent_id"], rows[0]["type"], "completed",
             rows[0]["created_at"], _ms(rows[0]["created_at"], _told_at(rows[-1])))
        for request_id, rows in by_request.items()
    ]  # fmt: skip


def _told_at(row: Row) -> datetime:
    found: datetime = ids.moment_of(row["id"]) or row["created_at"]
    return found


def _job_span(row: Row) -> Span:
    started = row["started_at"] or row["created_at"]
    ended = row["finished_at"] or (clock.now() if row["started_at"] else started)
    return Span(
        "job",
        row["id"],
        # Each attempt is part of its delivery.
        row["ref_id"] if row["kind"] == "webhooks.deliver" else row["cause_event_id"],
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


def _model_span(row: Row, requests: list[Span], jobs: list[Span]) -> Span:
    """A model answered within the job that asked it, or else within the request."""
    spent, at = row["response_time_ms"], row["created_at"]
    asking = [job for job in jobs if job.name == "chat.turn" and job.started_at <= at <= _end(job)]
    within = (asking or requests)[:1]
    return Span(
        "model",
        f"{row['id']}:{row['model']}",
        within[0].id if within else None,
        row["model"],
        "completed",
        at - timedelta(milliseconds=spent),
        float(spent),
    )


def _delivery_span(row: Row) -> Span:
    """From when there was something to deliver until it was, all attempts included."""
    ended = row["finished_at"] or clock.now()
    return Span(
        "delivery",
        row["id"],
        row["event_id"],
        f"{row['event_type']} to {row['host']}",
        row["status"],
        row["created_at"],
        _ms(row["created_at"], ended),
    )


def _ms(start: datetime, end: datetime) -> float:
    return round(max(0.0, (end - start).total_seconds() * 1000), 1)


def _end(span: Span) -> datetime:
    return datetime.fromtimestamp(
        span.started_at.timestamp() + span.duration_ms / 1000, span.started_at.tzinfo
    )
