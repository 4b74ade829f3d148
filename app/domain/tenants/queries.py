"""SQL of tenants."""

from collections.abc import Iterable

from sqlalchemy import select

from app.kit import paging
from app.kit.paging import Page
from db.counting import Total
from db.fast import Row
from db.models import Tenant
from db.session import Tx

_SORTABLE = {"name": Tenant.name, "plan": Tenant.plan, "created_at": Tenant.created_at}

_FIND = "SELECT id, name, plan, limits::text AS limits, created_at FROM tenants WHERE id = $1"

_LIST_WITH_USER_COUNTS = """
SELECT t.id, t.name, t.plan, count(u.id) AS users
FROM tenants t LEFT JOIN users u ON u.tenant_id = t.id
GROUP BY t.id ORDER BY t.created_at
"""
_HAS_USERS = "SELECT EXISTS (SELECT 1 FROM users WHERE tenant_id = $1)"
_FIND_DEFAULT = "SELECT value FROM instance_state WHERE key = 'default_tenant'"


async def find(tx: Tx, tenant_id: str) -> Row | None:
    row: Row | None = await (await tx.raw()).fetchrow(_FIND, tenant_id)
    return row


async def has_users(tx: Tx, tenant_id: str) -> bool:
    """True when the tenant has users, whichever tenant the transaction is in."""
    return bool(await (await tx.raw()).fetchval(_HAS_USERS, tenant_id))


async def delete_records(tx: Tx, tables: Iterable[str], tenant_id: str) -> None:
    """Deletes rows without a foreign key to the tenant. Writing such rows does not lock it."""
    raw = await tx.raw()
    for table in tables:
        await raw.execute(f"DELETE FROM {table} WHERE tenant_id = $1", tenant_id)


async def list_page(
    tx: Tx, page: Page, *, search: str | None, plan: str | None, sort: str | None
) -> tuple[list[Tenant], Total]:
    statement = select(Tenant)
    if search:
        statement = statement.where(paging.contains(Tenant.name, search))
    if plan:
        statement = statement.where(Tenant.plan == plan)
    ordering = paging.order(sort, _SORTABLE, "-created_at", Tenant.id)
    return await paging.fetch(tx, statement, page, ordering)


async def list_with_user_counts(tx: Tx) -> list[Row]:
    return list(await (await tx.raw()).fetch(_LIST_WITH_USER_COUNTS))


async def find_default_id(tx: Tx) -> str | None:
    tenant_id: str | None = await (await tx.raw()).fetchval(_FIND_DEFAULT)
    return tenant_id
