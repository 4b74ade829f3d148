"""Writes cannot reach rows of another tenant."""

import itertools
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import delete, insert, update
from sqlalchemy.dialects import postgresql

from app.services import Services
from db.models import Invitation
from db.session import ALL_TENANTS, CrossTenant
from tests.db.invitations import TwoTenants, build_invitation, build_values, read_email, row_exists


async def test_a_bulk_update_does_not_change_other_tenants(
    services: Services, tenants: TwoTenants
) -> None:
    async with services.db.tx(tenants.own.tenant_id) as tx:
        await (await tx.session()).execute(update(Invitation).values(email="hit@example.com"))
    assert await read_email(services, tenants.other_row_id) != "hit@example.com"


async def test_a_bulk_update_changes_rows_of_the_scope(
    services: Services, tenants: TwoTenants
) -> None:
    async with services.db.tx(tenants.own.tenant_id) as tx:
        await (await tx.session()).execute(update(Invitation).values(email="hit@example.com"))
    assert await read_email(services, tenants.own_row_id) == "hit@example.com"


async def test_a_bulk_update_by_key_does_not_change_other_tenants(
    services: Services, tenants: TwoTenants
) -> None:
    """Uses the bulk update by primary key, which has no WHERE clause."""
    changes = [{"id": tenants.other_row_id, "email": "hit@example.com"}]
    # An update may be refused or match no row.
    with suppress(CrossTenant):
        async with services.db.tx(tenants.own.tenant_id) as tx:
            await (await tx.session()).execute(update(Invitation), changes)
    assert await read_email(services, tenants.other_row_id) != "hit@example.com"


async def test_a_bulk_update_cannot_move_rows_to_another_tenant(
    services: Services, tenants: TwoTenants
) -> None:
    move = update(Invitation).values(tenant_id=tenants.other.tenant_id)
    with pytest.raises(CrossTenant):
        async with services.db.tx(tenants.own.tenant_id) as tx:
            await (await tx.session()).execute(move)


async def test_a_bulk_delete_does_not_delete_rows_of_other_tenants(
    services: Services, tenants: TwoTenants
) -> None:
    async with services.db.tx(tenants.own.tenant_id) as tx:
        await (await tx.session()).execute(delete(Invitation))
    assert not await row_exists(services, tenants.own_row_id)
    assert await row_exists(services, tenants.other_row_id)


async def test_add_sets_the_tenant(services: Services, tenants: TwoTenants) -> None:
    row = build_invitation(None)
    async with services.db.tx(tenants.own.tenant_id) as tx:
        (await tx.session()).add(row)
    assert row.tenant_id == tenants.own.tenant_id


async def test_add_of_another_tenants_row_is_refused(
    services: Services, tenants: TwoTenants
) -> None:
    row = build_invitation(tenants.other.tenant_id)
    with pytest.raises(CrossTenant):
        async with services.db.tx(tenants.own.tenant_id) as tx:
            (await tx.session()).add(row)
    assert not await row_exists(services, row.id)


async def test_a_row_cannot_change_its_tenant(services: Services, tenants: TwoTenants) -> None:
    async def move() -> None:
        async with services.db.tx(tenants.own.tenant_id) as tx:
            row = await (await tx.session()).get_one(Invitation, tenants.own_row_id)
            row.tenant_id = tenants.other.tenant_id

    with pytest.raises(CrossTenant):
        await move()


async def test_a_row_of_another_session_cannot_be_deleted_through_this_one(
    services: Services, tenants: TwoTenants
) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        row = await (await tx.session()).get_one(Invitation, tenants.other_row_id)
    with pytest.raises(CrossTenant):
        async with services.db.tx(tenants.own.tenant_id) as tx:
            await (await tx.session()).delete(row)
    assert await row_exists(services, tenants.other_row_id)


async def test_an_insert_statement_of_tenant_rows_is_refused(
    services: Services, tenants: TwoTenants, subtests: pytest.Subtests
) -> None:
    statements: dict[str, Any] = {
        "plain": insert(Invitation),
        "postgresql": postgresql.insert(Invitation),
    }
    for is_own, (name, statement) in itertools.product((True, False), statements.items()):
        with subtests.test(name, is_own=is_own):
            values = build_values((tenants.own if is_own else tenants.other).tenant_id)
            with pytest.raises(CrossTenant):
                async with services.db.tx(tenants.own.tenant_id) as tx:
                    await (await tx.session()).execute(statement.values(**values))
