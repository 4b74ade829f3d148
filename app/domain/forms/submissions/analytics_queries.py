"""SQL of the figures of a form."""

from collections.abc import Mapping
from datetime import date

import msgspec

from db import fast
from db.fast import Row
from db.session import Tx

from .analytics_schemas import SubmissionSource

_ADD_VIEWS = """
INSERT INTO form_views AS v (tenant_id, form_id, day, views)
SELECT f.tenant_id, f.id, n.day, n.views
FROM unnest($1::text[], $2::text[], $3::date[], $4::bigint[]) AS n(tenant_id, form_id, day, views)
JOIN forms f ON f.id = n.form_id AND f.tenant_id = n.tenant_id
ORDER BY f.id, n.day
ON CONFLICT (form_id, day) DO UPDATE SET views = v.views + excluded.views
"""
_COUNT_VIEWS = """
SELECT coalesce(sum(views), 0)::bigint FROM form_views WHERE tenant_id = $1 AND form_id = $2
"""
# The submissions are read once. Visitors choose sources and the fields that they answer, so that
# there may be as many groups as submissions; they stay in the database.
_COUNT_SUBMISSIONS = """
WITH g AS MATERIALIZED (
    SELECT (created_at AT TIME ZONE 'UTC')::date AS day, source, version, answered,
           count(*) AS count, count(completion_seconds) AS timed,
           coalesce(sum(completion_seconds), 0)::bigint AS seconds
    FROM form_submissions WHERE tenant_id = $1 AND form_id = $2 GROUP BY 1, 2, 3, 4
)
SELECT (
    SELECT coalesce(json_agg(d ORDER BY d.day), '[]') FROM (
        SELECT day, sum(count)::bigint AS count, sum(timed)::bigint AS timed,
               sum(seconds)::bigint AS seconds
        FROM g GROUP BY day
    ) d
) AS days, (
    SELECT coalesce(json_agg(s), '[]') FROM (
        SELECT source, sum(count)::bigint AS count FROM g
        GROUP BY source ORDER BY sum(count) DESC, source COLLATE "C" LIMIT $3
    ) s
) AS sources, (
    SELECT coalesce(json_agg(f), '[]') FROM (
        SELECT version, position, sum(count)::bigint AS submitted,
               coalesce(sum(count) FILTER (WHERE substr(answered, position, 1) = '1'), 0)::bigint
                   AS answered
        FROM (SELECT version, answered, sum(count) AS count FROM g GROUP BY 1, 2) a
        CROSS JOIN LATERAL generate_series(1, length(answered)) position
        GROUP BY version, position
    ) f
) AS fields
"""
# Drafts and conversations that did not become submissions.
_GROUP_BY_STOP = """
SELECT field_id, sum(count)::bigint AS count FROM (
    SELECT stopped_at AS field_id, count(*) AS count FROM form_drafts
    WHERE tenant_id = $1 AND form_id = $2 GROUP BY 1
    UNION ALL
    SELECT current_field, count(*) FROM form_conversations
    WHERE tenant_id = $1 AND form_id = $2 AND status <> 'completed' GROUP BY 1
) stops GROUP BY field_id
"""


class DayCount(msgspec.Struct, frozen=True):
    """`timed` are those whose start is known; `seconds` is how long they took together."""

    day: date
    count: int
    timed: int
    seconds: int


class FieldCount(msgspec.Struct, frozen=True):
    """How many submissions of a version answer one of its fields. The position is from 1."""

    version: int
    position: int
    submitted: int
    answered: int


class SubmissionCounts(msgspec.Struct, frozen=True):
    """Days are in order; sources are the most frequent ones, in that order."""

    days: list[DayCount]
    sources: list[SubmissionSource]
    fields: list[FieldCount]


async def add_views(tx: Tx, counts: Mapping[tuple[str, str, date], int]) -> None:
    """Adds counts by tenant, form and day. Those of a form that was deleted are dropped."""
    columns = zip(*((*key, amount) for key, amount in counts.items()), strict=True)
    await (await tx.raw()).execute(_ADD_VIEWS, *(list(column) for column in columns))


async def count_views(tx: Tx, tenant: str, form_id: str) -> int:
    return int(await fast.value(tx, tenant, _COUNT_VIEWS, form_id))


async def count_submissions(
    tx: Tx, tenant: str, form_id: str, max_sources: int
) -> SubmissionCounts:
    row = await fast.row(tx, tenant, _COUNT_SUBMISSIONS, form_id, max_sources)
    if row is None:
        raise RuntimeError("an aggregate returned no row")
    values = {name: row[name] for name in SubmissionCounts.__struct_fields__}
    return msgspec.convert(values, SubmissionCounts)


async def group_by_stop(tx: Tx, tenant: str, form_id: str) -> list[Row]:
    return await fast.rows(tx, tenant, _GROUP_BY_STOP, form_id)
