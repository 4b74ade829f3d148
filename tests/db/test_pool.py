"""Connections of the pool: checkout, return, loss and replacement."""

import asyncio
import itertools
from functools import partial
from typing import Any

import asyncpg
import pytest
from sqlalchemy import select

from app.services import Services
from db.models import Tenant
from db.session import ALL_TENANTS, Database, Tx
from tests.db.invitations import get_pool
from tests.stores import Stores
from tests.world import World


async def test_no_connection_is_checked_out_before_the_first_statement(database: Database) -> None:
    tx = database.begin(ALL_TENANTS)
    tx.set_scope(ALL_TENANTS)
    assert get_pool(database).checkedout() == 0
    await tx.commit()


async def test_one_connection_serves_both_ways_of_writing(database: Database) -> None:
    async with database.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).fetchval("SELECT 1")
        await (await tx.session()).scalar(select(Tenant.id).limit(1))
        assert get_pool(database).checkedout() == 1


async def _read_raw(tx: Tx) -> None:
    await (await tx.raw()).fetchval("SELECT 1")


async def _read_by_session(tx: Tx) -> None:
    await (await tx.session()).scalar(select(Tenant.id).limit(1))


async def test_a_connection_is_returned_when_the_transaction_ends(
    database: Database, subtests: pytest.Subtests
) -> None:
    cases = itertools.product((True, False), (_read_raw, _read_by_session), ("commit", "rollback"))
    for autocommit, use, end in cases:
        with subtests.test(end, autocommit=autocommit, use=use.__name__):
            tx = database.begin(ALL_TENANTS, autocommit=autocommit)
            await use(tx)
            await (tx.commit() if end == "commit" else tx.rollback())
            assert get_pool(database).checkedout() == 0


async def test_a_returned_connection_is_in_no_transaction(database: Database) -> None:
    tx = database.begin(ALL_TENANTS)
    raw = await tx.raw()
    await tx.rollback()
    assert not raw.is_in_transaction()


async def test_more_transactions_than_connections_wait_for_a_connection(database: Database) -> None:
    async def read_pid() -> int:
        async with database.tx(ALL_TENANTS) as tx:
            pid: int = await (await tx.raw()).fetchval("SELECT pg_backend_pid() FROM pg_sleep(0)")
            return pid

    pids = await asyncio.gather(*(read_pid() for _ in range(12)))
    assert len(set(pids)) <= get_pool(database).size()


async def _fill_pool(db: Database) -> list[asyncpg.Connection]:
    """Opens every connection of the pool and returns it to the pool."""
    transactions = [db.begin(ALL_TENANTS) for _ in range(get_pool(db).size())]
    connections = [await tx.raw() for tx in transactions]
    for tx in transactions:
        await tx.rollback()
    return connections


async def _terminate_connections(services: Services, connections: list[asyncpg.Connection]) -> None:
    """Ends the connections on the server, and waits until asyncpg has noticed it."""
    events = [asyncio.Event() for _ in connections]
    for connection, event in zip(connections, events, strict=True):
        connection.add_termination_listener(partial(_set_event, event))
    pids = [connection.get_server_pid() for connection in connections]
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        await (await tx.raw()).execute(
            "SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid", pids
        )
    async with asyncio.timeout(10):
        for event in events:
            await event.wait()


def _set_event(event: asyncio.Event, _connection: asyncpg.Connection) -> None:
    event.set()


async def test_the_pool_survives_the_loss_of_its_connections(
    services: Services, database: Database, subtests: pytest.Subtests
) -> None:
    for autocommit, use in itertools.product((True, False), (_read_raw, _read_by_session)):
        with subtests.test(autocommit=autocommit, use=use.__name__):
            connections = await _fill_pool(database)
            await _terminate_connections(services, connections)
            for _ in connections:
                async with database.tx(ALL_TENANTS, autocommit=autocommit) as tx:
                    await use(tx)


async def test_a_connection_lost_inside_a_transaction_is_returned_to_the_pool(
    services: Services, database: Database
) -> None:
    tx = database.begin(ALL_TENANTS)
    await _terminate_connections(services, [await tx.raw()])
    await tx.rollback()
    assert get_pool(database).checkedout() == 0


async def test_the_next_transaction_works_after_one_lost_its_connection(
    services: Services, database: Database
) -> None:
    tx = database.begin(ALL_TENANTS)
    await _terminate_connections(services, [await tx.raw()])
    await tx.rollback()
    async with database.tx(ALL_TENANTS) as another:
        assert await (await another.raw()).fetchval("SELECT 1") == 1


async def _expire_connections(db: Database) -> list[asyncpg.Connection]:
    """Fills the pool with connections that are too old to be used again."""
    connections = await _fill_pool(db)
    pool: Any = get_pool(db)
    pool._recycle = 0
    return connections


async def test_a_connection_past_its_age_is_replaced_without_an_error(database: Database) -> None:
    old = await _expire_connections(database)
    async with database.tx(ALL_TENANTS) as tx:
        assert await tx.raw() not in old


async def test_replaced_connections_do_not_shrink_the_pool(
    services: Services, database: Database, subtests: pytest.Subtests
) -> None:
    for state in ("lost", "expired"):
        with subtests.test(state=state):
            if state == "lost":
                await _terminate_connections(services, await _fill_pool(database))
            else:
                await _expire_connections(database)
            for _ in range(get_pool(database).size()):
                async with database.tx(ALL_TENANTS) as tx:
                    await _read_raw(tx)
            assert get_pool(database).checkedout() == 0


async def test_a_transaction_cancelled_at_any_point_leaves_a_clean_connection(
    stores: Stores, world: World, subtests: pytest.Subtests
) -> None:
    """The pool has one connection, so the next transaction gets the same one."""
    for steps in range(12):
        with subtests.test(steps=steps):
            tenant_id = await world.tenant()
            db = Database(stores.settings.sqlalchemy_url, pool_size=1)

            async def write() -> None:
                async with db.tx(tenant_id) as tx:  # noqa: B023
                    raw = await tx.raw()
                    await raw.execute(
                        "UPDATE tenants SET name = 'cancelled' WHERE id = $1",
                        tenant_id,  # noqa: B023
                    )

            try:
                async with db.tx(ALL_TENANTS, autocommit=True) as tx:
                    await (await tx.raw()).fetchval("SELECT 1")
                task = asyncio.create_task(write())
                for _ in range(steps):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                async with db.tx(tenant_id) as tx:
                    raw = await tx.raw()
                    await raw.execute("UPDATE tenants SET name = 'after' WHERE id = $1", tenant_id)
                async with world.services.db.tx(ALL_TENANTS, autocommit=True) as tx:
                    raw = await tx.raw()
                    assert (
                        await raw.fetchval("SELECT name FROM tenants WHERE id = $1", tenant_id)
                        == "after"
                    )
            finally:
                await db.close()
