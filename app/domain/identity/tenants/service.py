"""Tenants. Only super_admin manages them."""

from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET

from app.domain.area import Areas
from app.domain.platform.events import api as events
from app.kit import paging
from app.kit.errors import Invalid, Unavailable
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from app.security.errors import TenantNotFound
from app.security.plans import plan_of
from app.security.sessions import SessionCache
from db.models import Tenant
from db.session import Tx

from . import queries
from .errors import TenantIsDefault, TenantNotEmpty
from .events import TenantCreated, TenantDeleted, TenantUpdated
from .schemas import CreateTenant, Limits, TenantView, UpdateTenant


async def list_page(
    tx: Tx, page: Page, *, search: str | None, plan: str | None, sort: str | None
) -> Paged[TenantView]:
    views, total = await queries.list_page(tx, page, search=search, plan=plan, sort=sort)
    return paging.paged(views, total, page)


async def get(tx: Tx, tenant_id: str) -> TenantView:
    view = await queries.find(tx, tenant_id)
    if view is None:
        raise TenantNotFound(f"There is no tenant {tenant_id[:64]}")
    return view


async def get_default_id(tx: Tx) -> str:
    """Returns the tenant that users without an invitation join; `parley migrate` creates it."""
    tenant_id = await queries.find_default_id(tx)
    if tenant_id is None:
        raise Unavailable("This instance is not prepared yet; run `parley migrate`")
    return tenant_id


async def create(tx: Tx, data: CreateTenant) -> TenantView:
    tenant = Tenant(id=new_id("ten"), name=data.name, plan=data.plan, limits={})
    if data.limits is not UNSET:
        tenant.limits = _validate_limits(data.plan, data.limits)
    session = await tx.session()
    session.add(tenant)
    await session.flush()
    created = TenantCreated(tenant.id, tenant.name, tenant.plan)
    await events.emit(tx, created, tenant_id=tenant.id)
    return _view(tenant)


async def update(
    tx: Tx, session_cache: SessionCache, tenant_id: str, data: UpdateTenant
) -> TenantView:
    tenant = await _lock(tx, tenant_id)
    changed = [name for name in ("name", "plan", "limits") if getattr(data, name) is not UNSET]
    if data.name is not UNSET:
        tenant.name = data.name
    if data.plan is not UNSET:
        tenant.plan = data.plan
    if data.limits is not UNSET:
        tenant.limits = _validate_limits(tenant.plan, data.limits)
    elif tenant.plan != "enterprise":
        tenant.limits = {}
    await (await tx.session()).flush()
    await events.emit(tx, TenantUpdated(tenant.id, changed), tenant_id=tenant.id)
    limits = plan_of(tenant.plan, tenant.limits).to_script_argument()
    tx.after_commit.append(partial(session_cache.change_plan, tenant.id, limits))
    return _view(tenant)


async def delete(tx: Tx, areas: Areas, tenant_id: str, emit_to: str) -> None:
    """Deletes a tenant without users; users must be deleted one by one before. The event goes to
    the log of `emit_to`, since the tenant's own log is deleted with it.
    """
    tenant = await _lock(tx, tenant_id)
    if await queries.find_default_id(tx) == tenant_id:
        raise TenantIsDefault("People without an invitation join this tenant; it cannot be deleted")
    if await queries.has_users(tx, tenant_id):
        raise TenantNotEmpty("This tenant still has users; delete them first")
    session = await tx.session()
    await session.delete(tenant)
    await session.flush()
    await queries.delete_records(tx, areas.tenant_tables, tenant_id)
    await events.emit(tx, TenantDeleted(tenant_id, tenant.name), tenant_id=emit_to)


async def _lock(tx: Tx, tenant_id: str) -> Tenant:
    tenant = await (await tx.session()).get(Tenant, tenant_id, with_for_update=True)
    if tenant is None:
        raise TenantNotFound(f"There is no tenant {tenant_id[:64]}")
    return tenant


def _validate_limits(plan: str, limits: Limits) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(limits)
    if values and plan != "enterprise":
        raise Invalid.field("limits", "can be set only on the enterprise plan")
    return values


def _view(row: Tenant) -> TenantView:
    limits = msgspec.convert(row.limits, Limits)
    return TenantView(row.id, row.name, row.plan, limits, row.created_at)  # type: ignore[arg-type]
