"""The log of a channel, and figures about what channels delivered."""

from typing import Final

from app.domain.messaging.outbox.api import LogFilter
from app.kit.paging import Flat, Page, flat
from db.fast import Row
from db.session import Tx

from . import channel_queries as queries
from . import channels
from .channel_schemas import (
    AllStats,
    DayStats,
    LogEntryView,
    Period,
    ProviderStats,
    Stats,
    StatsBreakdown,
    TypeStats,
)

_DAYS: Final[dict[Period, int]] = {"7d": 7, "30d": 30, "90d": 90}


async def list_log(tx: Tx, channel_id: str, filters: LogFilter, page: Page) -> Flat[LogEntryView]:
    entries, total = await queries.list_log(tx, channel_id, filters, page)
    if not entries:
        await channels.require(tx, channel_id)
    return flat(entries, total, page)


async def get_stats(tx: Tx, channel_id: str) -> Stats:
    row = await queries.find_stats(tx, channel_id)
    if row is None:
        raise channels.not_found(channel_id)
    return Stats(*_figures(row))


async def get_all_stats(tx: Tx) -> AllStats:
    row = await queries.find_all_stats(tx)
    return AllStats(*_figures(row), row["channels"], row["active_channels"])


async def get_breakdown(tx: Tx, period: Period) -> StatsBreakdown:
    rows = await queries.list_breakdown(tx, _DAYS[period])
    return StatsBreakdown(
        period,
        [TypeStats(*_figures(row), row["type"]) for row in rows if row["type"] is not None],
        [
            ProviderStats(*_figures(row), row["provider"])
            for row in rows
            if row["provider"] is not None
        ],
        [DayStats(*_figures(row), row["day"]) for row in rows if row["day"] is not None],
    )


def _figures(row: Row) -> tuple[int, int, int, float, float]:
    """Returns the fields of `Stats`."""
    delivered, failed = row["delivered"], row["failed"]
    total = delivered + failed
    rate = round(100 * delivered / total, 2) if total else 0.0
    average = round(row["total_ms"] / delivered, 1) if delivered else 0.0
    return total, delivered, failed, rate, average
