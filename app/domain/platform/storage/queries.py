"""SQL of what tenants store. Triggers record by how much each statement changes it."""

from typing import Final

from app.security.plans import limit_sql
from db import fast
from db.fast import Row
from db.session import Tx

_MEGABYTE: Final = 1024 * 1024
_LIMIT_BYTES: Final = f"{limit_sql('storage_mb', 't')} * {_MEGABYTE}"

_FIND = f"""
SELECT t.plan, t.limits::text AS limits, {_LIMIT_BYTES} AS limit_bytes,
       coalesce(u.used_bytes, 0) AS file_bytes, coalesce(u.file_count, 0) AS file_count,
       coalesce(u.used_bytes, 0) + greatest(coalesce(u.other_bytes, 0), 0) AS used_bytes,
       (SELECT json_object_agg(kind, greatest(bytes, 0)) FROM storage_kinds k
        WHERE k.tenant_id = t.id)::text AS kinds
FROM tenants t LEFT JOIN storage_usage u ON u.tenant_id = t.id WHERE t.id = $1
"""

# Parts of the statements that add and delete files. The counter is locked until the end of the
# transaction: no two uploads take the same free space. The tenant is locked before its counter, as
# its deletion does. `$1` is the tenant, `$2` the size of the file and `$3` the limit, 0 for none.
_LOCK_LIMIT = f"SELECT {_LIMIT_BYTES} FROM tenants t WHERE t.id = $1 FOR KEY SHARE"
COUNT_FILE: Final = """
counted AS (
    INSERT INTO storage_usage AS u (tenant_id, used_bytes, file_count)
    SELECT $1, $2::bigint, 1 WHERE $3::bigint = 0 OR $2::bigint <= $3::bigint
    ON CONFLICT (tenant_id) DO UPDATE
    SET used_bytes = u.used_bytes + excluded.used_bytes, file_count = u.file_count + 1
    WHERE $3::bigint = 0
       OR u.used_bytes + greatest(u.other_bytes, 0) + excluded.used_bytes <= $3::bigint
    RETURNING tenant_id
)
"""
# The files that are deleted are the rows of `deleted`.
RELEASE_FILES: Final = """
released AS (
    UPDATE storage_usage u
    SET used_bytes = u.used_bytes - d.size_bytes, file_count = u.file_count - d.file_count
    FROM (
        SELECT tenant_id, sum(size_bytes) AS size_bytes, count(*) AS file_count
        FROM deleted GROUP BY tenant_id
    ) d
    WHERE u.tenant_id = d.tenant_id
)
"""

# Changes of a deleted tenant are discarded. Statements that run at the same time lock rows in the
# same order.
_ADD_UP = """
WITH claimed AS (
    DELETE FROM storage_changes
    WHERE ctid = ANY(ARRAY(SELECT ctid FROM storage_changes LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING tenant_id, kind, bytes
), owned AS (
    SELECT tenant_id, kind, sum(bytes)::bigint AS bytes FROM claimed
    WHERE EXISTS (SELECT 1 FROM tenants WHERE tenants.id = claimed.tenant_id)
    GROUP BY tenant_id, kind
), kinds AS (
    INSERT INTO storage_kinds AS k (tenant_id, kind, bytes)
    SELECT tenant_id, kind, bytes FROM owned ORDER BY 1, 2
    ON CONFLICT (tenant_id, kind) DO UPDATE SET bytes = k.bytes + excluded.bytes
), totals AS (
    INSERT INTO storage_usage AS u (tenant_id, other_bytes)
    SELECT tenant_id, sum(bytes) FROM owned GROUP BY tenant_id ORDER BY tenant_id
    ON CONFLICT (tenant_id) DO UPDATE SET other_bytes = u.other_bytes + excluded.other_bytes
)
SELECT count(*) FROM claimed
"""

# The level of a tenant, in percent of its quota: a level ends when a tenth of the quota less is
# used, so that a tenant at its edge is not told again and again.
_LEVEL = """
CASE WHEN used >= quota THEN 100
     WHEN used >= quota * 0.9 AND warned = 100 THEN 100
     WHEN used >= quota * 0.8 THEN 80
     WHEN used >= quota * 0.7 AND warned >= 80 THEN 80
     ELSE 0 END
"""
_LIST_CHANGED_LEVELS = f"""
SELECT tenant_id, warned, level FROM (
    SELECT tenant_id, warned, {_LEVEL} AS level FROM (
        SELECT u.tenant_id, u.warned_percent AS warned, {_LIMIT_BYTES} AS quota,
               u.used_bytes + greatest(u.other_bytes, 0) AS used
        FROM storage_usage u JOIN tenants t ON t.id = u.tenant_id
    ) usage WHERE quota > 0
) levels
WHERE level <> warned ORDER BY tenant_id LIMIT $1
"""
_SET_LEVEL = """
UPDATE storage_usage SET warned_percent = $3 WHERE tenant_id = $1 AND warned_percent = $2
"""


async def find(tx: Tx, tenant_id: str) -> Row | None:
    return await fast.row(tx, tenant_id, _FIND)


async def lock_limit(tx: Tx, tenant_id: str) -> int | None:
    """Returns the bytes that a tenant may store, 0 for no limit; None when there is no tenant."""
    limit_bytes: int | None = await fast.value(tx, tenant_id, _LOCK_LIMIT)
    return limit_bytes


async def add_up(tx: Tx, limit: int) -> int:
    """Adds up to `limit` changes to what their tenants store; returns their number."""
    return int(await (await tx.raw()).fetchval(_ADD_UP, limit))


async def list_changed_levels(tx: Tx, limit: int) -> list[Row]:
    return list(await (await tx.raw()).fetch(_LIST_CHANGED_LEVELS, limit))


async def set_level(tx: Tx, tenant_id: str, before: int, level: int) -> bool:
    """False when another worker has set it."""
    return await fast.execute(tx, tenant_id, _SET_LEVEL, before, level) > 0
