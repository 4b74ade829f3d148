"""The session and plain SQL share one transaction."""

from functools import partial

import asyncpg
import pytest
from sqlalchemy import select, text

from app.services import Services
from db import fast
from db.models import Invitation, Tenant
from db.session import ALL_TENANTS, Database
from tests.db.invitations import COUNT_SQL, TwoTenants, build_invitation, get_pool, row_exists


async def test_plain_sql_sees_rows_that_the_session_has_not_committed(
    services: Services, tenants: TwoTenants
) -> None:
    async with services.db.tx(tenants.own.tenant_id) as tx:
        (await tx.session()).add(build_invitation(None))
        assert await fast.value(tx, fast.tenant_of(tx), COUNT_SQL) == 2


async def test_the_session_sees_what_plain_sql_wrote(
    services: Services, tenants: TwoTenants
) -> None:
    async with services.db.tx(tenants.own.tenant_id) as tx:
        await (await tx.raw()).execute(
            "UPDATE invitations SET email = 'raw@example.com' WHERE id = $1", tenants.own_row_id
        )
        row = await (await tx.session()).get_one(Invitation, tenants.own_row_id)
        assert row.email == "raw@example.com"


async def test_both_ways_of_writing_are_in_the_same_transaction(
    services: Services, tenants: TwoTenants
) -> None:
    async with services.db.tx(tenants.own.tenant_id) as tx:
        by_session = await (await tx.session()).scalar(text("SELECT txid_current()"))
        assert await (await tx.raw()).fetchval("SELECT txid_current()") == by_session


async def test_a_rollback_undoes_both_ways_of_writing(
    services: Services, tenants: TwoTenants, subtests: pytest.Subtests
) -> None:
    for first in ("session", "raw"):
        with subtests.test(first=first):
            by_session = build_invitation(tenants.own.tenant_id)
            tx = services.db.begin(tenants.own.tenant_id)

            async def write_by_session() -> None:
                (await tx.session()).add(by_session)  # noqa: B023

            async def write_raw() -> None:
                await (await tx.raw()).execute(  # noqa: B023
                    "DELETE FROM invitations WHERE id = $1", tenants.own_row_id
                )

            steps = [write_by_session, write_raw]
            for step in steps if first == "session" else reversed(steps):
                await step()
            await tx.rollback()
            assert not await row_exists(services, by_session.id)
            assert await row_exists(services, tenants.own_row_id)


async def test_an_error_in_the_block_undoes_it(services: Services, tenants: TwoTenants) -> None:
    row = build_invitation(None)

    async def write_and_fail() -> None:
        async with services.db.tx(tenants.own.tenant_id) as tx:
            session = await tx.session()
            session.add(row)
            await session.flush()
            raise LookupError

    with pytest.raises(LookupError):
        await write_and_fail()
    assert not await row_exists(services, row.id)


async def test_an_error_of_postgres_leaves_the_connection_usable(
    database: Database, tenants: TwoTenants
) -> None:
    for _ in range(get_pool(database).size() + 1):
        with pytest.raises(asyncpg.PostgresError):
            async with database.tx(tenants.own.tenant_id) as tx:
                await (await tx.raw()).execute("SELECT 1 / 0")
    async with database.tx(tenants.own.tenant_id) as tx:
        assert await (await tx.raw()).fetchval("SELECT 1") == 1


async def test_nothing_is_visible_to_others_before_the_commit(
    services: Services, tenants: TwoTenants
) -> None:
    row = build_invitation(None)
    async with services.db.tx(tenants.own.tenant_id) as tx:
        session = await tx.session()
        session.add(row)
        await session.flush()
        assert not await row_exists(services, row.id)


async def test_after_commit_callbacks_run_when_the_row_is_visible_to_others(
    services: Services, tenants: TwoTenants
) -> None:
    row, results = build_invitation(None), []

    async def look() -> None:
        results.append(await row_exists(services, row.id))

    async with services.db.tx(tenants.own.tenant_id) as tx:
        (await tx.session()).add(row)
        tx.after_commit.append(look)
    assert results == [True]


async def _append_note(notes: list[str], text: str) -> None:
    notes.append(text)


async def test_a_rollback_runs_no_after_commit_callback(services: Services) -> None:
    notes: list[str] = []
    tx = services.db.begin(ALL_TENANTS)
    await tx.raw()
    tx.after_commit.append(partial(_append_note, notes, "ran"))
    await tx.rollback()
    await tx.commit()
    assert notes == []


async def test_a_failed_commit_runs_no_after_commit_callback(
    services: Services, tenants: TwoTenants
) -> None:
    notes: list[str] = []

    async def write_a_row_that_does_not_fit() -> None:
        async with services.db.tx(tenants.own.tenant_id) as tx:
            tx.after_commit.append(partial(_append_note, notes, "ran"))
            (await tx.session()).add(build_invitation(None, invited_by="usr_nobody"))

    with pytest.raises(Exception, match="foreign key"):
        await write_a_row_that_does_not_fit()
    assert notes == []


async def test_after_commit_callbacks_run_in_order(services: Services) -> None:
    notes: list[str] = []
    async with services.db.tx(ALL_TENANTS) as tx:
        tx.after_commit += [partial(_append_note, notes, word) for word in ("first", "second")]
    assert notes == ["first", "second"]


async def test_a_read_opens_no_transaction(services: Services) -> None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        await raw.fetchval("SELECT 1")
        assert not raw.is_in_transaction()


async def test_a_write_opens_a_transaction(services: Services) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        assert (await tx.raw()).is_in_transaction()


async def test_a_read_through_the_session_shares_its_transaction_with_plain_sql(
    services: Services,
) -> None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        await (await tx.session()).scalar(select(Tenant.id).limit(1))
        assert (await tx.raw()).is_in_transaction()
