"""Selects without a tenant condition return rows of the transaction's scope only."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Select, exists, func, select
from sqlalchemy.orm import aliased

from app.services import Services
from db.models import Invitation, Tenant, User
from db.session import ALL_TENANTS
from tests.db.invitations import TwoTenants
from tests.world import Client


def _select_by_alias() -> Select[str]:
    return select(aliased(Invitation).id)


def _select_by_subquery() -> Select[str]:
    inner = select(Invitation).subquery()
    return select(inner.c.id)


def _select_by_cte() -> Select[str]:
    inner = select(Invitation.id).cte()
    return select(inner.c.id)


def _select_by_in() -> Select[str]:
    return select(Invitation.id).where(Invitation.id.in_(select(aliased(Invitation).id)))


SELECTS: dict[str, Callable[[], Select[str]]] = {
    "column": lambda: select(Invitation.id),
    "alias": _select_by_alias,
    "subquery": _select_by_subquery,
    "cte": _select_by_cte,
    "in": _select_by_in,
    "join": lambda: select(Invitation.id).join(User, User.id == Invitation.invited_by),
    "joined": lambda: (
        select(Invitation.id)
        .select_from(Tenant)
        .join(Invitation, Invitation.tenant_id == Tenant.id)
    ),
}


async def test_a_select_without_a_tenant_returns_rows_of_the_scope_only(
    services: Services, tenants: TwoTenants, subtests: pytest.Subtests
) -> None:
    for name, build in SELECTS.items():
        with subtests.test(name=name):
            async with services.db.tx(tenants.own.tenant_id) as tx:
                ids = list(await (await tx.session()).scalars(build()))
            assert ids == [tenants.own_row_id]


async def test_the_scope_of_all_tenants_returns_rows_of_every_tenant(
    services: Services, tenants: TwoTenants, subtests: pytest.Subtests
) -> None:
    for name, build in SELECTS.items():
        with subtests.test(name=name):
            async with services.db.tx(ALL_TENANTS) as tx:
                ids = set(await (await tx.session()).scalars(build()))
            assert {tenants.own_row_id, tenants.other_row_id} <= ids


async def test_a_select_of_whole_rows_returns_rows_of_the_scope_only(
    services: Services, tenants: TwoTenants
) -> None:
    async with services.db.tx(tenants.own.tenant_id) as tx:
        rows = await (await tx.session()).scalars(select(Invitation))
        assert [row.id for row in rows] == [tenants.own_row_id]


async def test_a_joined_table_is_scoped_as_well(services: Services, tenants: TwoTenants) -> None:
    """The other tenant's invitation refers to this user; the join must not return it."""
    statement = select(Invitation.id).select_from(User)
    statement = statement.join(Invitation, Invitation.invited_by == User.id)
    async with services.db.tx(tenants.own.tenant_id) as tx:
        assert list(await (await tx.session()).scalars(statement)) == [tenants.own_row_id]


async def test_a_count_counts_rows_of_the_scope_only(
    services: Services, tenants: TwoTenants
) -> None:
    async with services.db.tx(tenants.own.tenant_id) as tx:
        session = await tx.session()
        assert await session.scalar(select(func.count()).select_from(Invitation)) == 1


async def test_a_count_of_a_subquery_counts_rows_of_the_scope_only(
    services: Services, tenants: TwoTenants
) -> None:
    async with services.db.tx(tenants.own.tenant_id) as tx:
        inner = select(Invitation).subquery()
        assert await (await tx.session()).scalar(select(func.count()).select_from(inner)) == 1


async def test_exists_ignores_rows_of_another_tenant(
    services: Services, tenants: TwoTenants
) -> None:
    statement = select(Tenant.id).where(
        exists(select(Invitation.id).where(_is_of_tenant(Tenant.id)))
    )
    async with services.db.tx(tenants.own.tenant_id) as tx:
        assert list(await (await tx.session()).scalars(statement)) == [tenants.own.tenant_id]


def _is_of_tenant(tenant_id: Any) -> Any:
    return Invitation.tenant_id == tenant_id


async def test_a_union_returns_rows_of_the_scope_only(
    services: Services, tenants: TwoTenants
) -> None:
    statement = select(Invitation.id).union_all(select(Invitation.id))
    async with services.db.tx(tenants.own.tenant_id) as tx:
        assert set(await (await tx.session()).scalars(statement)) == {tenants.own_row_id}


async def test_get_by_id_does_not_return_a_row_of_another_tenant(
    services: Services, tenants: TwoTenants
) -> None:
    async with services.db.tx(tenants.own.tenant_id) as tx:
        assert await (await tx.session()).get(Invitation, tenants.other_row_id) is None


async def test_get_by_id_returns_a_row_of_the_scope(
    services: Services, tenants: TwoTenants
) -> None:
    async with services.db.tx(tenants.own.tenant_id) as tx:
        assert await (await tx.session()).get(Invitation, tenants.own_row_id) is not None


async def test_scopes_do_not_leak_through_the_statement_cache(
    services: Services, tenants: TwoTenants
) -> None:
    id_lists: list[list[str]] = []
    for tenant_id in (tenants.own.tenant_id, tenants.other.tenant_id, tenants.own.tenant_id):
        async with services.db.tx(tenant_id) as tx:
            id_lists.append(list(await (await tx.session()).scalars(select(Invitation.id))))
    assert id_lists == [[tenants.own_row_id], [tenants.other_row_id], [tenants.own_row_id]]


async def test_a_route_without_a_tenant_condition_returns_rows_of_the_callers_tenant(
    tenants: TwoTenants,
) -> None:
    id_lists = [
        (await caller.get("/test/forgetful")).json() for caller in (tenants.own, tenants.other)
    ]
    assert id_lists == [[tenants.own_row_id], [tenants.other_row_id]]


async def test_a_route_without_a_tenant_condition_returns_all_rows_to_super_admin(
    tenants: TwoTenants, super_admin: Client
) -> None:
    answer = await super_admin.get("/test/forgetful")
    assert {tenants.own_row_id, tenants.other_row_id} <= set(answer.json())


async def test_a_route_without_a_tenant_condition_returns_the_tenant_of_the_header_to_super_admin(
    tenants: TwoTenants, super_admin: Client
) -> None:
    headers = {"x-tenant-id": tenants.other.tenant_id}
    answer = await super_admin.get("/test/forgetful", headers=headers)
    assert answer.json() == [tenants.other_row_id]
