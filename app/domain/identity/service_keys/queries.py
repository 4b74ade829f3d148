"""SQL of service keys."""

from typing import Final

from app.domain import quota
from app.kit import paging
from app.kit.paging import Page, SortOrders
from db import fast
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.models import ServiceKey
from db.session import Tx
from db.views import View

from .schemas import ServiceKeyView

MAX_KEYS: Final = 100
_IS_ACTIVE = "revoked_at IS NULL"
_VIEW = View(ServiceKeyView)
_ORDERS = SortOrders(
    "-created_at", ServiceKey.id, created_at=ServiceKey.created_at, name=ServiceKey.name
)
_REVOKE = f"""
UPDATE service_keys SET revoked_at = now(), updated_at = now()
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2 AND {_IS_ACTIVE}
RETURNING tenant_id, name, role
"""
_FIND_ROLE = f"""
SELECT role FROM service_keys
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2 AND {_IS_ACTIVE}
"""


async def list_page(
    tx: Tx, page: Page, sort: str | None, created_by: str | None
) -> tuple[list[ServiceKeyView], Total]:
    where = Where(tenant_of(tx), _IS_ACTIVE)
    where.equal("created_by", created_by)
    return await paging.fetch(tx, _VIEW, "service_keys", where, _ORDERS.sql(sort), page)


async def check_quota(tx: Tx, tenant_id: str) -> None:
    active = (ServiceKey.tenant_id == tenant_id, ServiceKey.revoked_at.is_(None))
    await quota.check(tx, ServiceKey, MAX_KEYS, "service keys", *active)


async def find_role(tx: Tx, key_id: str) -> str | None:
    role: str | None = await fast.value(tx, tenant_of(tx), _FIND_ROLE, key_id)
    return role


async def revoke(tx: Tx, key_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _REVOKE, key_id)
