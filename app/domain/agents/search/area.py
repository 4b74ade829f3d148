from collections.abc import Sequence
from typing import Final

from app.domain.area import Area, Span, find_turn
from app.domain.platform.events.api import MAX_SPANS
from db.fast import Row
from db.retention import RetentionRule
from db.session import Tx
from db.storage_quota import UncountedTable

from . import queries
from .engines.registry import SearchEngines


async def _read_spans(
    tx: Tx, tenant: str | None, correlation_id: str, outer: Sequence[Span]
) -> list[Span]:
    """Returns one span per search, as a child of the turn that searched."""
    rows = await queries.list_searches(tx, tenant, correlation_id, MAX_SPANS)
    return [
        Span(
            "tool",
            row["id"],
            find_turn(outer, row["started_at"]),
            _name(row),
            row["status"],
            row["started_at"],
            row["duration_ms"],
        )
        for row in rows
    ]


def _name(row: Row) -> str:
    name, count = f"Web search by {row['engine']}", row["result_count"]
    return name if count is None else f"{name}, {count} result{'' if count == 1 else 's'}"


AREA: Final = Area(
    name="search",
    retention=(
        RetentionRule(
            "web_searches", "t.started_at < now() - interval '90 days'", order_by="t.started_at"
        ),
    ),
    spans=_read_spans,
    shared=lambda services: (SearchEngines(services.egress, services.settings.searxng_url),),
    tenant_tables=("web_searches",),
    tables=(
        UncountedTable("web_search_configs", "one for each agent"),
        UncountedTable("web_searches", "small, deleted after 90 days"),
    ),
)
