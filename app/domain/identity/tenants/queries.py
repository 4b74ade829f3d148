"""SQL of tenants."""

from collections.abc import Iterable

from app.kit import paging
from app.kit.paging import Page, SortOrders
from db.fast import Row
from db.lists import Total, Where
from db.models import Tenant
from db.session import Tx
from db.views import View

from .schemas import TenantView

_SORT_ORDERS = SortOrders(
    "-created_at", Tenant.id, name=Tenant.name, plan=Tenant.plan, created_at=Tenant.created_at
)
_VIEW = View(TenantView)

_FIND = f"SELECT {_VIEW.columns} FROM tenants WHERE id = $1"

_LIST_WITH_USER_COUNTS = """
SELECT t.id, t.name, t.plan, count(u.id) AS users
FROM tenants t LEFT JOIN users u ON u.tenant_id = t.id
GROUP BY t.id ORDER BY t.created_at
"""
_HAS_USERS = "SELECT EXISTS (SELECT 1 FROM users WHERE tenant_id = $1)"
_FIND_DEFAULT = "SELECT value FROM instance_state WHERE key = 'default_tenant'"


async def find(tx: Tx, tenant_id: str) -> TenantView | None:
    return await _VIEW.find(tx, tenant_id, _FIND)


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
) -> tuple[list[TenantView], Total]:
    where = Where(None)
    where.contain(search, "name")
    where.equal("plan", plan)
    return await paging.fetch(tx, _VIEW, "tenants", where, _SORT_ORDERS.sql(sort), page)


async def list_with_user_counts(tx: Tx) -> list[Row]:
    return list(await (await tx.raw()).fetch(_LIST_WITH_USER_COUNTS))


async def find_default_id(tx: Tx) -> str | None:
    tenant_id: str | None = await (await tx.raw()).fetchval(_FIND_DEFAULT)
    return tenant_id
