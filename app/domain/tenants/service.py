"""Tenants: super_admin's alone."""

from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET
from sqlalchemy import select

from app.domain.events import service as events
from app.domain.tenants import queries
from app.domain.tenants.events import TenantCreated, TenantDeleted, TenantUpdated
from app.domain.tenants.schemas import CreateTenant, Limits, TenantView, UpdateTenant
from app.http import paging
from app.http.errors import Conflict, Invalid, TenantNotFound, Unavailable
from app.http.limits import plan_of
from app.http.paging import Page, Paged
from app.kit.ids import new_id
from app.security.sessions import Copies
from db.models import Tenant
from db.session import Tx

_SORTABLE = {"name": Tenant.name, "plan": Tenant.plan, "created_at": Tenant.created_at}


class TenantNotEmpty(Conflict):
    code = "tenant_not_empty"


class TenantIsDefault(Conflict):
    code = "tenant_is_default"


async def page_of(
    tx: Tx, page: Page, *, search: str | None, plan: str | None, sort: str | None
) -> Paged[TenantView]:
    wanted = select(Tenant)
    if search:
        wanted = wanted.where(paging.contains(Tenant.name, search))
    if plan:
        wanted = wanted.where(Tenant.plan == plan)
    ordering = paging.order(sort, _SORTABLE, "-created_at", Tenant.id)
    rows, total = await paging.fetch(tx, wanted, page, ordering)
    return paging.paged([_view(row) for row in rows], total, page)


async def get(tx: Tx, tenant_id: str) -> TenantView:
    row = await queries.one(tx, tenant_id)
    if row is None:
        raise TenantNotFound(f"There is no tenant {tenant_id[:64]}")
    limits = msgspec.json.decode(row["limits"], type=Limits)
    return TenantView(row["id"], row["name"], row["plan"], limits, row["created_at"])


async def default_id(tx: Tx) -> str:
    """The tenant that people without an invitation join; made when the instance was prepared."""
    found = await queries.default_id(tx)
    if found is None:
        raise Unavailable("This instance is not prepared yet; run `parley migrate`")
    return found


async def create(tx: Tx, data: CreateTenant) -> TenantView:
    tenant = Tenant(id=new_id("ten"), name=data.name, plan=data.plan, limits={})
    if data.limits is not UNSET:
        tenant.limits = _checked(data.plan, data.limits)
    session = await tx.session()
    session.add(tenant)
    await session.flush()
    created = TenantCreated(tenant.id, tenant.name, tenant.plan)
    await events.emit(tx, created, tenant_id=tenant.id)
    return _view(tenant)


async def update(tx: Tx, copies: Copies, tenant_id: str, data: UpdateTenant) -> TenantView:
    session = await tx.session()
    tenant = await session.get(Tenant, tenant_id, with_for_update=True)
    if tenant is None:
        raise TenantNotFound(f"There is no tenant {tenant_id[:64]}")
    changed = [name for name in ("name", "plan", "limits") if getattr(data, name) is not UNSET]
    if data.name is not UNSET:
        tenant.name = data.name
    if data.plan is not UNSET:
        tenant.plan = data.plan
    if data.limits is not UNSET:
        tenant.limits = _checked(tenant.plan, data.limits)
    elif tenant.plan != "enterprise":
        tenant.limits = {}
    await session.flush()
    await events.emit(tx, TenantUpdated(tenant.id, changed), tenant_id=tenant.id)
    packed = plan_of(tenant.plan, tenant.limits).packed()
    tx.after_commit.append(partial(copies.change_plan, tenant.id, packed))
    return _view(tenant)


async def delete(tx: Tx, tenant_id: str, told_to: str) -> None:
    """Only a tenant that nobody belongs to: its users are deleted one by one, on purpose."""
    session = await tx.session()
    tenant = await session.get(Tenant, tenant_id, with_for_update=True)
    if tenant is None:
        raise TenantNotFound(f"There is no tenant {tenant_id[:64]}")
    if await queries.default_id(tx) == tenant_id:
        raise TenantIsDefault("People without an invitation join this tenant; it cannot be deleted")
    if await queries.has_users(tx, tenant_id):
        raise TenantNotEmpty("This tenant still has users; delete them first")
    await session.delete(tenant)
    await session.flush()
    await queries.delete_records(tx, tenant_id)
    await events.emit(tx, TenantDeleted(tenant_id, tenant.name), tenant_id=told_to)


def _checked(plan: str, limits: Limits) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(limits)
    if values and plan != "enterprise":
        raise Invalid.field("limits", "can be set only on the enterprise plan")
    return values


def _view(row: Tenant) -> TenantView:
    limits = msgspec.convert(row.limits, Limits)
    return TenantView(row.id, row.name, row.plan, limits, row.created_at)  # type: ignore[arg-type]
