"""Builds the report on a tenant's usage over time."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Final, Literal

import msgspec

from app.kit import clock
from app.kit.errors import Invalid
from db.fast import Row, tenant_of
from db.session import Tx

from .series_queries import (
    COUNTS_REQUESTS,
    SUMS,
    GroupBy,
    Interval,
    Measure,
    SeriesFilter,
    read_series,
)
from .series_schemas import SeriesSums, SeriesValues, UsageGroup, UsageOthers, UsageSeries

SeriesPeriod = Literal["24h", "7d", "30d", "90d"]

_PERIODS: Final = {
    "24h": timedelta(hours=23),
    "7d": timedelta(days=6),
    "30d": timedelta(days=29),
    "90d": timedelta(days=89),
}
# As many hours as 31 days have.
MAX_BUCKETS: Final = 750
HOURS_DAYS: Final = 31
_HOURLY: Final = timedelta(days=2)
_MONTHLY: Final = timedelta(days=200)
_FIRST: Final = datetime(2020, 1, 1, tzinfo=UTC)
_DECIMALS: Final = 9


class SeriesQuery(msgspec.Struct, frozen=True, kw_only=True):
    group_by: GroupBy = "none"
    interval: Interval | None = None
    period: SeriesPeriod | None = None
    since: datetime | None = None
    until: datetime | None = None
    agent_id: str | None = None
    model: str | None = None
    top: int = 5
    measure: Measure = "cost_usd"


async def build_series(tx: Tx, query: SeriesQuery) -> UsageSeries:
    _check(query)
    since, until = _read_period(query)
    interval = query.interval or _choose_interval(until - since)
    buckets = _list_buckets(interval, since, until)
    until = _find_next(interval, buckets[-1])
    what = SeriesFilter(
        query.group_by, interval, query.agent_id, query.model, query.top, query.measure
    )
    rows = await read_series(tx, tenant_of(tx), what, buckets[0], until)
    groups, others = _build_groups(rows, what, buckets)
    parts = [group.totals for group in groups] + ([others.totals] if others else [])
    return UsageSeries(
        group_by=query.group_by,
        interval=interval,
        measure=query.measure,
        since=buckets[0],
        until=until,
        buckets=buckets,
        groups=groups,
        other=others,
        totals=_add_up(parts, has_requests=what.has_requests),
    )


def _check(query: SeriesQuery) -> None:
    if query.period is not None and (query.since is not None or query.until is not None):
        raise Invalid.field("period", "cannot be combined with from and to")
    if query.model is not None and query.group_by in {"user", "key", "source"}:
        raise Invalid.field("model", "cannot be combined with group_by user, key or source")
    if query.measure == "requests" and query.group_by not in COUNTS_REQUESTS:
        raise Invalid.field("measure", "requests are counted without groups, by user and by key")


def _read_period(query: SeriesQuery) -> tuple[datetime, datetime]:
    now = clock.now().astimezone(UTC)
    until = (query.until or now).astimezone(UTC)
    since = query.since or until - _PERIODS[query.period or "30d"]
    since = since.astimezone(UTC)
    if since > until:
        raise Invalid.field("from", "must be before to")
    if until > now + timedelta(days=1):
        raise Invalid.field("to", "must not be in the future")
    return max(since, _FIRST), max(until, _FIRST)


def _choose_interval(length: timedelta) -> Interval:
    if length <= _HOURLY:
        return "hour"
    return "month" if length > _MONTHLY else "day"


def _list_buckets(interval: Interval, since: datetime, until: datetime) -> list[datetime]:
    """Returns the starts of all hours, days or months that the period touches; `until` itself
    belongs to the period only where nothing else does.
    """
    start = since.replace(minute=0, second=0, microsecond=0)
    if interval != "hour":
        start = start.replace(hour=0)
    if interval == "month":
        start = start.replace(day=1)
    if interval == "hour" and start < clock.now() - timedelta(days=HOURS_DAYS):
        raise Invalid.field("from", f"hours are kept for {HOURS_DAYS} days; ask for days")
    buckets = [start]
    while (following := _find_next(interval, buckets[-1])) < until:
        buckets.append(following)
        if len(buckets) > MAX_BUCKETS:
            problem = f"has more than {MAX_BUCKETS} buckets; ask for a longer interval"
            raise Invalid.field("interval", problem)
    return buckets


def _find_next(interval: Interval, start: datetime) -> datetime:
    if interval == "hour":
        return start + timedelta(hours=1)
    if interval == "day":
        return start + timedelta(days=1)
    return (start + timedelta(days=31)).replace(day=1)


def _build_groups(
    rows: Sequence[Row], what: SeriesFilter, buckets: list[datetime]
) -> tuple[list[UsageGroup], UsageOthers | None]:
    places = {bucket: place for place, bucket in enumerate(buckets)}
    groups, others = list[UsageGroup](), None
    for rank, of_rank in groupby(rows, key=lambda row: row["rank"]):
        group = list(of_rank)
        totals, values = _fill(group, places, has_requests=what.has_requests)
        if rank > what.top:
            others = UsageOthers(totals, values)
            continue
        key = group[0]["grp"]
        is_deleted = key is not None and not group[0]["is_present"]
        groups.append(UsageGroup(key, group[0]["name"], is_deleted, totals, values))
    if what.group_by == "none" and not groups:
        totals, values = _fill([], places, has_requests=what.has_requests)
        groups.append(UsageGroup(None, None, is_deleted=False, totals=totals, values=values))
    return groups, others


def _fill(
    rows: Iterable[Row], places: dict[datetime, int], *, has_requests: bool
) -> tuple[SeriesSums, SeriesValues]:
    """Returns the sums of a group, and its values with zeros where it has no row."""
    values: dict[str, Any] = {name: [0] * len(places) for name in SUMS}
    values["cost_usd"] = [0.0] * len(places)
    sums: dict[str, Any] = dict.fromkeys(SUMS, 0)
    for row in rows:
        place = places[row["at"].replace(tzinfo=UTC)]
        for name in SUMS:
            sums[name] += row[name]
            values[name][place] = float(row[name]) if name == "cost_usd" else int(row[name])
    sums = {name: int(value) for name, value in sums.items()} | {"cost_usd": sums["cost_usd"]}
    if not has_requests:
        values["requests"] = None
    return _build_sums(sums, has_requests=has_requests), SeriesValues(**values)


def _add_up(parts: Sequence[SeriesSums], *, has_requests: bool) -> SeriesSums:
    sums = {name: sum(getattr(part, name) or 0 for part in parts) for name in SUMS}
    return _build_sums(sums, has_requests=has_requests)


def _build_sums(sums: dict[str, Any], *, has_requests: bool) -> SeriesSums:
    sums["cost_usd"] = round(float(sums["cost_usd"]), _DECIMALS)
    return SeriesSums(**sums | ({} if has_requests else {"requests": None}))
