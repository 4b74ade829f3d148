"""Transactions without a scope, with one tenant and with all tenants."""

from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import delete, exists, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.services import Services
from db import fast
from db.models import Invitation, Tenant
from db.session import ALL_TENANTS, CrossTenant, Unscoped
from tests.db.invitations import TwoTenants, build_invitation, build_values, row_exists
from tests.world import World

UNSCOPED: dict[str, Callable[[AsyncSession], Awaitable[object]]] = {
    "select": lambda session: session.scalars(select(Invitation)),
    "column": lambda session: session.scalars(select(Invitation.id)),
    "get": lambda session: session.get(Invitation, "inv_x"),
    "count": lambda session: session.scalar(select(func.count()).select_from(Invitation)),
    "count of a subquery": lambda session: session.scalar(
        select(func.count()).select_from(select(Invitation).subquery())
    ),
    "join": lambda session: session.scalars(
        select(Tenant.id).join(Invitation, Invitation.tenant_id == Tenant.id)
    ),
    "exists": lambda session: session.scalar(select(exists(select(Invitation.id)))),
    "update": lambda session: session.execute(update(Invitation).values(role="viewer")),
    "delete": lambda session: session.execute(delete(Invitation)),
    "insert": lambda session: session.execute(insert(Invitation).values(**build_values("ten_x"))),
}


async def test_without_a_scope_statements_on_tenant_rows_are_refused(
    services: Services, subtests: pytest.Subtests
) -> None:
    for name, run in UNSCOPED.items():
        with subtests.test(name=name):
            tx = services.db.begin(None)
            try:
                with pytest.raises(Unscoped):
                    await run(await tx.session())
            finally:
                await tx.rollback()


async def test_without_a_scope_nothing_can_be_added(
    services: Services, tenants: TwoTenants
) -> None:
    with pytest.raises(Unscoped):
        async with services.db.tx(None) as tx:
            (await tx.session()).add(build_invitation(tenants.own.tenant_id))


async def test_without_a_scope_tables_of_no_tenant_can_be_read(
    services: Services, tenants: TwoTenants
) -> None:
    async with services.db.tx(None) as tx:
        assert await (await tx.session()).get(Tenant, tenants.own.tenant_id) is not None


async def test_without_a_scope_plain_sql_has_no_tenant(services: Services) -> None:
    tx = services.db.begin(None)
    with pytest.raises(Unscoped):
        fast.tenant_of(tx)


async def test_the_scope_of_all_tenants_gives_plain_sql_no_tenant(services: Services) -> None:
    assert fast.tenant_of(services.db.begin(ALL_TENANTS)) is None


async def test_the_scope_of_all_tenants_adds_rows_for_any_tenant(
    services: Services, tenants: TwoTenants
) -> None:
    row = build_invitation(tenants.other.tenant_id)
    async with services.db.tx(ALL_TENANTS) as tx:
        (await tx.session()).add(row)
    assert await row_exists(services, row.id)


async def test_a_transaction_can_enter_its_tenant_later(
    services: Services, tenants: TwoTenants
) -> None:
    async with services.db.tx(None) as tx:
        session = await tx.session()
        tx.set_scope(tenants.own.tenant_id)
        assert list(await session.scalars(select(Invitation.id))) == [tenants.own_row_id]


async def test_entering_the_same_tenant_again_is_harmless(services: Services) -> None:
    tx = services.db.begin(None)
    tx.set_scope("ten_a")
    tx.set_scope("ten_a")
    assert tx.scope == "ten_a"


async def test_a_transaction_cannot_change_to_another_tenant(services: Services) -> None:
    tx = services.db.begin(None)
    tx.set_scope("ten_a")
    with pytest.raises(CrossTenant):
        tx.set_scope("ten_b")


async def test_a_transaction_of_one_tenant_cannot_change_to_all_tenants(services: Services) -> None:
    tx = services.db.begin("ten_a")
    with pytest.raises(CrossTenant):
        tx.set_scope(ALL_TENANTS)


async def test_a_select_of_a_table_without_its_class_is_refused(
    world: World, services: Services
) -> None:
    async with services.db.tx(await world.tenant(), autocommit=True) as tx:
        session = await tx.session()
        with pytest.raises(Unscoped):
            await session.execute(select(Invitation.__table__))
