"""SQL of the limits of a tenant that are counted in its own tables."""

from db import fast
from db.fast import Row
from db.session import Tx

MAX_KEYS = 100
# The tenant is an argument of its own: a super_admin without a tenant reads those of its own.
_LIMITS = f"""
SELECT t.plan, t.limits::text AS limits,
       (SELECT coalesce(sum(c.rows), 0)::bigint FROM data_table_counts c
        WHERE c.tenant_id = t.id AND c.table_id NOT IN (
            SELECT d.id FROM data_tables d WHERE d.tenant_id = t.id AND d.deleted_at IS NOT NULL
        )) AS data_rows,
       (SELECT coalesce(json_agg(k), '[]') FROM (
            SELECT e.id, e.name, e.agent_id, e.max_messages_per_day, e.max_tokens_per_day,
                   coalesce(u.messages, 0) AS messages, coalesce(u.tokens, 0) AS tokens
            FROM embed_keys e
            LEFT JOIN embed_key_usage u ON u.embed_key_id = e.id AND u.tenant_id = e.tenant_id
              AND u.day = (now() AT TIME ZONE 'UTC')::date
            WHERE e.tenant_id = t.id
              AND (e.max_messages_per_day IS NOT NULL OR e.max_tokens_per_day IS NOT NULL)
            ORDER BY greatest(
                coalesce(u.messages, 0)::float / nullif(e.max_messages_per_day, 0),
                coalesce(u.tokens, 0)::float / nullif(e.max_tokens_per_day, 0)
            ) DESC NULLS LAST, e.id
            LIMIT {MAX_KEYS}
        ) k) AS embed_keys
FROM tenants t WHERE ($1::text IS NULL OR t.id = $1) AND t.id = $2
"""


async def read_limits(tx: Tx, tenant: str | None, payer_id: str) -> Row | None:
    return await fast.row(tx, tenant, _LIMITS, payer_id)
