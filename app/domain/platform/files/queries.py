"""SQL of stored files, and of what each tenant stores."""

from app.domain.platform.storage.api import COUNT_FILE, RELEASE_FILES
from app.kit import paging
from app.kit.errors import Invalid
from app.kit.paging import Page, SortOrders
from db import fast
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.models import File
from db.session import Tx
from db.views import View

from .schemas import FileView

VIEW = View(FileView)
_SORT_ORDERS = SortOrders(
    "-created_at",
    File.id,
    filename=File.filename,
    size_bytes=File.size_bytes,
    mime_type=File.mime_type,
    created_at=File.created_at,
)
# The other orders have no index over all tenants.
_BY_TIME = (None, "created_at", "-created_at")
# The other purposes belong to their own areas.
_LISTED = "purpose IN ('upload', 'form')"

_FIND = f"""
SELECT key, owner_id, {VIEW.columns} FROM files
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2 AND {_LISTED}
"""
_FIND_UNKNOWN = f"""
SELECT wanted.id FROM unnest($2::text[]) WITH ORDINALITY AS wanted(id, position)
WHERE NOT EXISTS (
    SELECT 1 FROM files f WHERE f.tenant_id = $1 AND f.id = wanted.id AND {_LISTED}
)
ORDER BY wanted.position
"""

_INSERT = f"""
WITH {COUNT_FILE}
INSERT INTO files
    (tenant_id, size_bytes, id, key, purpose, owner_id, filename, mime_type, sha256, created_by)
SELECT tenant_id, $2::bigint, $4, $5, $6, $7, $8, $9, $10, $11 FROM counted
RETURNING {VIEW.columns}
"""
_DELETE = f"""
WITH deleted AS (
    DELETE FROM files WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2 AND {_LISTED}
    RETURNING tenant_id, key, {VIEW.columns}
), {RELEASE_FILES}
SELECT * FROM deleted
"""
_DELETE_BY_KEY = f"""
WITH deleted AS (
    DELETE FROM files WHERE tenant_id = $1 AND key = ANY($2) RETURNING tenant_id, size_bytes
), {RELEASE_FILES}
SELECT count(*) FROM deleted
"""
_DELETE_BY_OWNER = f"""
WITH deleted AS (
    DELETE FROM files WHERE owner_id = $1 AND purpose = $2 RETURNING tenant_id, size_bytes
), {RELEASE_FILES}
SELECT count(*) FROM deleted
"""

# Upkeep, across tenants

_LIST_TENANTS = "SELECT id FROM tenants WHERE id = ANY($1)"
_LIST_KNOWN_KEYS = "SELECT key FROM files WHERE key = ANY($1)"


async def find(tx: Tx, tenant: str | None, file_id: str) -> Row | None:
    return await fast.row(tx, tenant, _FIND, file_id)


async def find_unknown_ids(tx: Tx, tenant_id: str, file_ids: list[str]) -> list[str]:
    return [row["id"] for row in await fast.rows(tx, tenant_id, _FIND_UNKNOWN, file_ids)]


async def list_page(
    tx: Tx,
    page: Page,
    *,
    search: str | None,
    mime_type: str | None,
    purpose: str | None,
    sort: str | None,
) -> tuple[list[FileView], Total]:
    tenant, order = tenant_of(tx), _SORT_ORDERS.sql(sort)
    if tenant is None and sort not in _BY_TIME:
        raise Invalid.field("sort", "must be created_at or -created_at without a tenant")
    where = Where(tenant)
    if purpose is None or mime_type is not None or tenant is None or sort not in _BY_TIME:
        where.require(_LISTED)
        where.equal("purpose", purpose)
    else:
        # In this order there is an index for each purpose. The planner would rather walk along all
        # files, where it takes the purpose for a frequent one.
        where.equal_unseen("purpose", purpose)
    where.contain(search, "filename")
    where.equal("mime_type", mime_type)
    source = f"FROM files WHERE {where.sql}"
    rows, total = await paging.fetch_page(
        tx,
        where,
        f"{VIEW.columns} {source} ORDER BY {order} LIMIT $limit OFFSET $offset",
        page,
        counted=source,
        estimated=f"FROM files WHERE {where.estimated_sql}",
    )
    return [VIEW.build(row) for row in rows], total


async def insert(
    tx: Tx, tenant_id: str, size_bytes: int, limit_bytes: int, *columns: object
) -> FileView | None:
    """The columns are those of the statement, from id to created_by. None when the tenant would
    store more than the limit; 0 stands for no limit.
    """
    return await VIEW.find(tx, tenant_id, _INSERT, size_bytes, limit_bytes, *columns)


async def delete(tx: Tx, tenant: str | None, file_id: str) -> Row | None:
    return await fast.row(tx, tenant, _DELETE, file_id)


async def delete_by_key(tx: Tx, tenant_id: str, keys: list[str]) -> None:
    await fast.execute(tx, tenant_id, _DELETE_BY_KEY, keys)


async def delete_by_owner(tx: Tx, owner_id: str, purpose: str) -> None:
    await (await tx.raw()).execute(_DELETE_BY_OWNER, owner_id, purpose)


async def list_existing_tenants(tx: Tx, tenant_ids: list[str]) -> set[str]:
    return {row["id"] for row in await (await tx.raw()).fetch(_LIST_TENANTS, tenant_ids)}


async def list_known_keys(tx: Tx, keys: list[str]) -> set[str]:
    return {row["key"] for row in await (await tx.raw()).fetch(_LIST_KNOWN_KEYS, keys)}
