"""SQL of the figures of a form."""

from collections.abc import Mapping
from datetime import date

from db import fast
from db.fast import Row
from db.session import Tx

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
_GROUP_BY_DAY = """
SELECT (created_at AT TIME ZONE 'UTC')::date AS day, count(*) AS count,
       count(completion_seconds) AS timed, sum(completion_seconds)::bigint AS seconds
FROM form_submissions WHERE tenant_id = $1 AND form_id = $2 GROUP BY 1 ORDER BY 1
"""
# Visitors choose the sources and the fields that they answer, so that there may be as many groups
# as submissions. They stay in the database.
_GROUP_BY_SOURCE = """
SELECT source, count(*) AS count FROM form_submissions WHERE tenant_id = $1 AND form_id = $2
GROUP BY source ORDER BY count(*) DESC, source COLLATE "C" LIMIT $3
"""
_GROUP_BY_FIELD = """
SELECT version, position, sum(count)::bigint AS submitted,
       coalesce(sum(count) FILTER (WHERE substr(answered, position, 1) = '1'), 0)::bigint
           AS answered
FROM (SELECT version, answered, count(*) AS count FROM form_submissions
      WHERE tenant_id = $1 AND form_id = $2 GROUP BY version, answered) g
CROSS JOIN LATERAL generate_series(1, length(answered)) position
GROUP BY version, position
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


async def add_views(tx: Tx, counts: Mapping[tuple[str, str, date], int]) -> None:
    """Adds counts by tenant, form and day. Those of a form that was deleted are dropped."""
    columns = zip(*((*key, amount) for key, amount in counts.items()), strict=True)
    await (await tx.raw()).execute(_ADD_VIEWS, *(list(column) for column in columns))


async def count_views(tx: Tx, tenant: str, form_id: str) -> int:
    return int(await fast.value(tx, tenant, _COUNT_VIEWS, form_id))


async def group_by_day(tx: Tx, tenant: str, form_id: str) -> list[Row]:
    return await fast.rows(tx, tenant, _GROUP_BY_DAY, form_id)


async def group_by_source(tx: Tx, tenant: str, form_id: str, limit: int) -> list[Row]:
    """Returns the most frequent ones; those with the same number in the order of their names."""
    return await fast.rows(tx, tenant, _GROUP_BY_SOURCE, form_id, limit)


async def group_by_field(tx: Tx, tenant: str, form_id: str) -> list[Row]:
    """Returns how many submissions of a version answer the field at a position, from 1."""
    return await fast.rows(tx, tenant, _GROUP_BY_FIELD, form_id)


async def group_by_stop(tx: Tx, tenant: str, form_id: str) -> list[Row]:
    return await fast.rows(tx, tenant, _GROUP_BY_STOP, form_id)
