from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from app.domain.area import Area, PeriodicTask, Span, find_turn
from app.domain.platform.events.api import MAX_SPANS
from app.security.permissions import DEVELOPERS, Permission
from db.fast import Row
from db.retention import RetentionRule
from db.session import Tx
from db.storage_quota import UncountedTable

from . import queries, service
from .request_counter import RequestCounter


async def _read_spans(
    tx: Tx, tenant: str | None, correlation_id: str, outer: Sequence[Span]
) -> list[Span]:
    rows = await queries.list_by_correlation(tx, tenant, correlation_id, MAX_SPANS)
    return [_build_model_span(row, outer) for row in rows]


def _build_model_span(row: Row, outer: Sequence[Span]) -> Span:
    milliseconds, ended = row["response_time_ms"], row["created_at"]
    return Span(
        "model",
        f"{row['id']}:{row['model']}",
        find_turn(outer, ended),
        row["model"],
        "failed" if row["failures"] else "completed",
        ended - timedelta(milliseconds=milliseconds),
        float(milliseconds),
        error=row["error"],
    )


AREA: Final = Area(
    name="usage",
    permissions=(Permission("usage:read", "See usage and cost", DEVELOPERS),),
    retention=(
        RetentionRule(
            "usage",
            "t.rolled AND t.created_at < now() - interval '400 days'",
            order_by="t.created_at",
        ),
        # Series have hours of the last 31 days.
        RetentionRule(
            "usage_count_hours", "t.hour < now() - interval '33 days'", order_by="t.hour"
        ),
        RetentionRule(
            "usage_caller_hours", "t.hour < now() - interval '33 days'", order_by="t.hour"
        ),
    ),
    periodic_tasks=(PeriodicTask(30.0, service.roll_up),),
    spans=_read_spans,
    span_permissions=("conversations:read",),
    shared=lambda services: (RequestCounter(services.db),),
    tenant_tables=("usage", "usage_counts"),
    tables=(
        UncountedTable("usage", "small, kept for bills"),
        UncountedTable("usage_hours", "sums, kept for bills"),
        UncountedTable("usage_days", "sums, kept for bills"),
        UncountedTable("usage_counts", "small, deleted once it is added up"),
        UncountedTable("usage_count_hours", "a number, deleted after a month"),
        UncountedTable("usage_count_days", "a number for each day"),
        UncountedTable("usage_caller_hours", "sums, deleted after a month"),
        UncountedTable("usage_caller_days", "sums, kept for bills"),
        UncountedTable("usage_names", "a name for each agent and key"),
    ),
)
