from datetime import datetime
from typing import Any, ClassVar

import msgspec

from .series_queries import GroupBy, Interval, Measure

_SUMS_EXAMPLE: dict[str, Any] = {
    "requests": None,
    "turns": 31,
    "prompt_tokens": 8120,
    "completion_tokens": 1000,
    "total_tokens": 9120,
    "cost_usd": 0.001818,
    "conversations": 12,
}
_VALUES_EXAMPLE: dict[str, Any] = {
    "requests": None,
    "turns": [11, 0, 20],
    "prompt_tokens": [3120, 0, 5000],
    "completion_tokens": [400, 0, 600],
    "total_tokens": [3520, 0, 5600],
    "cost_usd": [0.000709, 0.0, 0.001109],
    "conversations": [4, 0, 8],
}


class SeriesSums(msgspec.Struct):
    """Sums of the period. `requests` is null where requests are not counted: by agent, model and
    source, and with a filter. `turns` are answers of agents. Cost is in US dollars.
    """

    example: ClassVar[dict[str, Any]] = _SUMS_EXAMPLE

    requests: int | None
    turns: int
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cost_usd: float
    conversations: int


class SeriesValues(msgspec.Struct):
    """A list per measure, with a value for each of `buckets`."""

    example: ClassVar[dict[str, Any]] = _VALUES_EXAMPLE

    requests: list[int] | None
    turns: list[int]
    prompt_tokens: list[int]
    completion_tokens: list[int]
    total_tokens: list[int]
    cost_usd: list[float]
    conversations: list[int]


class UsageGroup(msgspec.Struct):
    """One group over time. `id` is null for what belongs to none, such as calls without an agent
    or turns of visitors when grouped by user. `name` is that of an agent, user or key; a
    deleted agent or key keeps its last one, and a deleted user has none.
    """

    example: ClassVar[dict[str, Any]] = {
        "id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Support",
        "is_deleted": False,
        "totals": _SUMS_EXAMPLE,
        "values": _VALUES_EXAMPLE,
    }

    id: str | None
    name: str | None
    is_deleted: bool
    totals: SeriesSums
    values: SeriesValues


class UsageOthers(msgspec.Struct):
    """All groups together that `top` leaves out."""

    example: ClassVar[dict[str, Any]] = {"totals": _SUMS_EXAMPLE, "values": _VALUES_EXAMPLE}

    totals: SeriesSums
    values: SeriesValues


class UsageSeries(msgspec.Struct):
    """Usage over time. `buckets` has the start of each hour, day or month in UTC, those without
    usage included; `until` is the end of the last one. `groups` come in the order of `measure`,
    highest first; without groups there is one. `other` is null when `groups` has all.
    """

    example: ClassVar[dict[str, Any]] = {
        "group_by": "agent",
        "interval": "day",
        "measure": "cost_usd",
        "since": "2026-01-01T00:00:00Z",
        "until": "2026-01-04T00:00:00Z",
        "buckets": ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"],
        "groups": [UsageGroup.example],
        "other": None,
        "totals": _SUMS_EXAMPLE,
    }

    group_by: GroupBy
    interval: Interval
    measure: Measure
    since: datetime
    until: datetime
    buckets: list[datetime]
    groups: list[UsageGroup]
    other: UsageOthers | None
    totals: SeriesSums
