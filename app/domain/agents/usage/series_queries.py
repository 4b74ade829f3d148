"""SQL of usage over time: one statement, whose sums come from one snapshot.

Sums of hours or days are read, and the rows that are not added to them yet. Sums by agent and model
are other tables than those by caller and source.
"""

from datetime import datetime
from functools import cache
from typing import Final, Literal, get_args

import msgspec

from db import fast
from db.fast import Row
from db.session import Tx
from db.user_names import user_name_sql

from .queries import turn_count_sql

GroupBy = Literal["none", "agent", "model", "user", "key", "source"]
Interval = Literal["hour", "day", "month"]
Measure = Literal["cost_usd", "total_tokens", "turns", "requests", "conversations"]
_MEASURES: Final = get_args(Measure)

SUMS: Final = (
    "requests",
    "turns",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "cost_usd",
    "conversations",
)
_STORED: Final = ("turns", "prompt_tokens", "completion_tokens", "cost_usd", "conversations")
# Rows that are not added up yet have the counts of previews, too.
_ROW_COLUMNS: Final = ", ".join(
    turn_count_sql(name) if name in {"turns", "conversations"} else name for name in _STORED
)
_OF_CALLERS: Final = frozenset({"user", "key", "source"})
COUNTS_REQUESTS: Final = frozenset({"none", "user", "key"})
_CALLER = "coalesce(u.caller_id, u.user_id, '')"
_GROUPS: Final = {
    "none": "NULL",
    "agent": "nullif(u.agent_id, u.tenant_id)",
    "model": "u.model",
    "source": "nullif(u.source, '')",
    "user": "CASE WHEN starts_with({caller}, 'usr_') THEN {caller} END",
    "key": "CASE WHEN {caller} ~ '^(svk|emk)_' THEN {caller} END",
}


@cache
def _series_sql(group_by: GroupBy, interval: Interval, *, is_filtered: bool, is_one: bool) -> str:
    unit: Literal["hour", "day"] = "hour" if interval == "hour" else "day"
    # Rows of deleted tenants may be there for a moment.
    owned = "EXISTS (SELECT 1 FROM tenants t WHERE t.id = u.tenant_id)"
    owned = "u.tenant_id = $1" if is_one else f"$1::text IS NULL AND {owned}"
    # With a filter, no requests count.
    parts = _list_parts(group_by, unit, owned, counts_requests=not is_filtered)
    sums = ", ".join(f"sum({name}) AS {name}" for name in SUMS)
    truncated = f"date_trunc('{interval}', at)"
    return f"""
WITH rows AS (
    SELECT *, prompt_tokens + completion_tokens AS total_tokens
    FROM ({" UNION ALL ".join(parts)}) parts
), sums AS (
    SELECT {truncated} AS at, grp, {sums} FROM rows GROUP BY 1, 2
), ranked AS (
    SELECT grp, row_number() OVER (ORDER BY CASE $7::text {_measures()} END DESC,
                                   sum(total_tokens) DESC, grp) AS rank
    FROM sums GROUP BY grp
), kept AS (
    SELECT s.at, least(r.rank, $6::int + 1) AS rank, CASE WHEN r.rank <= $6 THEN s.grp END AS grp,
           {sums}
    FROM sums s JOIN ranked r ON r.grp IS NOT DISTINCT FROM s.grp GROUP BY 1, 2, 3
), named AS MATERIALIZED (
    SELECT k.rank, {_names(group_by)} FROM ranked k WHERE k.rank <= $6
)
SELECT k.*, n.name, n.is_present
FROM kept k LEFT JOIN named n ON n.rank = k.rank ORDER BY k.rank, k.at
"""


def _list_parts(
    group_by: GroupBy, unit: Literal["hour", "day"], owned: str, *, counts_requests: bool
) -> list[str]:
    """Each selects the moment in UTC, the group and the sums."""
    is_of_callers = group_by in _OF_CALLERS
    table = f"usage_caller_{unit}s" if is_of_callers else f"usage_{unit}s"
    at = "u.day::timestamp" if unit == "day" else "u.hour AT TIME ZONE 'UTC'"
    start = "u.day >= ($2::timestamptz AT TIME ZONE 'UTC')::date"
    end = "u.day < ($3::timestamptz AT TIME ZONE 'UTC')::date"
    period = f"{start} AND {end}" if unit == "day" else "u.hour >= $2 AND u.hour < $3"
    stored = f"{owned} AND {period} AND ($4::text IS NULL OR u.agent_id = $4)"
    if group_by == "source":
        # Requests have none.
        stored += " AND u.source <> ''"
    if not is_of_callers:
        stored += " AND ($5::text IS NULL OR u.model = $5)"
    group, columns = _GROUPS[group_by], ", ".join(_STORED)
    requests = "u.requests" if is_of_callers and group_by in COUNTS_REQUESTS else "0"
    if not counts_requests:
        requests = "0"
    parts = [
        f"""
    SELECT {at} AS at, {group.format(caller="u.caller_id")} AS grp, {columns},
           {requests} AS requests
    FROM {table} u WHERE {stored}""",
        f"""
    SELECT u.created_at AT TIME ZONE 'UTC', {group.format(caller=_CALLER)}, {_ROW_COLUMNS}, 0
    FROM usage u WHERE NOT u.rolled AND {owned} AND u.created_at >= $2 AND u.created_at < $3
      AND ($4::text IS NULL OR u.agent_id = $4) AND ($5::text IS NULL OR u.model = $5)""",
    ]
    if group_by == "none" and counts_requests:
        zeros = ", ".join("0" * len(_STORED))
        parts.append(
            f"""
    SELECT {at}, NULL, {zeros}, u.amount
    FROM usage_count_{unit}s u WHERE u.kind = 'requests' AND {owned} AND {period}"""
        )
    return parts


def _measures() -> str:
    return " ".join(f"WHEN '{name}' THEN sum({name})" for name in _MEASURES)


def _names(group_by: GroupBy) -> str:
    """Selects the name of a group, which may be deleted, and whether it still exists."""
    of_tenant = "($1::text IS NULL OR x.tenant_id = $1)"
    last = f"(SELECT min(x.name) FROM usage_names x WHERE x.id = k.grp AND {of_tenant})"

    def of(table: str, name: str = "x.name", more: str = "") -> str:
        return f"(SELECT {name} FROM {table} x WHERE x.id = k.grp AND {of_tenant}{more})"

    match group_by:
        case "agent":
            # Forms use models as well.
            current, shown = f"coalesce({of('agents')}, {of('forms')})", last
        case "key":
            active = " AND x.revoked_at IS NULL"
            current = f"coalesce({of('embed_keys')}, {of('service_keys', more=active)})"
            shown = f"coalesce({of('service_keys')}, {last})"
        case "user":
            current, shown = of("users", user_name_sql("x")), "NULL"
        case _:
            return "k.grp AS name, true AS is_present"
    return f"coalesce({current}, {shown}) AS name, {current} IS NOT NULL AS is_present"


class SeriesFilter(msgspec.Struct, frozen=True):
    """What is read: the first `top` groups by `measure`, and the others together."""

    group_by: GroupBy
    interval: Interval
    agent_id: str | None
    model: str | None
    top: int
    measure: Measure

    @property
    def is_narrowed(self) -> bool:
        return self.agent_id is not None or self.model is not None

    @property
    def has_requests(self) -> bool:
        """Requests have no agent, model or source."""
        return self.group_by in COUNTS_REQUESTS and not self.is_narrowed


async def read_series(
    tx: Tx, tenant: str | None, what: SeriesFilter, since: datetime, until: datetime
) -> list[Row]:
    """Returns the sums by `rank` and `at`, in UTC without a zone. The rank after `top` has all
    other groups together.
    """
    sql = _series_sql(
        what.group_by, what.interval, is_filtered=what.is_narrowed, is_one=tenant is not None
    )
    conditions = (what.agent_id, what.model, what.top, what.measure)
    return await fast.rows(tx, tenant, sql, since, until, *conditions)
