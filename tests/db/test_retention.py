"""Deleting expired rows: in batches, in turn, and for a limited time."""

import itertools
from collections.abc import AsyncIterator

import asyncpg
import pytest

from app.services import Services
from db.retention import BATCH, PLATFORM_RULES, RetentionRule, delete_expired
from db.session import ALL_TENANTS

DELETED = RetentionRule("deleted_rows", "t.age > 1", order_by="t.age")
CLEARED = RetentionRule("cleared_rows", "t.age > 1 AND t.content <> ''", clears="content = ''")
BATCHES = 3
EXPIRED = BATCHES * BATCH + 1


@pytest.fixture
async def connection(services: Services) -> AsyncIterator[asyncpg.Connection]:
    """A connection with two tables of expired rows and one young row each."""
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        for rule in (DELETED, CLEARED):
            await raw.execute(
                f"CREATE TEMP TABLE {rule.table} AS SELECT 'text' AS content,"
                f" CASE WHEN n = 0 THEN 0 ELSE 2 END AS age FROM generate_series(0, {EXPIRED}) n"
            )
        yield raw
        await raw.execute("DROP TABLE deleted_rows, cleared_rows")


async def _count_expired(connection: asyncpg.Connection) -> list[int]:
    return [
        await connection.fetchval(f"SELECT count(*) FROM {rule.table} t WHERE {rule.condition}")
        for rule in (DELETED, CLEARED)
    ]


async def test_expired_rows_of_many_batches_are_deleted_and_others_are_kept(
    connection: asyncpg.Connection,
) -> None:
    assert not await delete_expired(connection, (DELETED, CLEARED))
    assert await _count_expired(connection) == [0, 0]
    assert await connection.fetchval("SELECT count(*) FROM deleted_rows") == 1
    sql = "SELECT count(*) FROM cleared_rows WHERE content = 'text'"
    assert await connection.fetchval(sql) == 1


@pytest.mark.parametrize(("rule", "command"), [(DELETED, "DELETE"), (CLEARED, "UPDATE")])
async def test_a_statement_changes_one_batch(
    connection: asyncpg.Connection, rule: RetentionRule, command: str
) -> None:
    assert await connection.execute(rule.sql) == f"{command} {BATCH}"


async def test_the_rules_take_turns_until_the_time_is_up(connection: asyncpg.Connection) -> None:
    ticks = itertools.count()
    # Each rule reads the clock before its batch.
    seconds = len(PLATFORM_RULES) + 2 + 2 + 1
    assert await delete_expired(
        connection, (DELETED, CLEARED), seconds=seconds, clock=lambda: next(ticks)
    )
    assert await _count_expired(connection) == [EXPIRED - 2 * BATCH] * 2
    assert not await delete_expired(connection, (DELETED, CLEARED))
    assert await _count_expired(connection) == [0, 0]


async def test_a_locked_row_is_left_to_the_next_batch(
    services: Services, connection: asyncpg.Connection
) -> None:
    rule = RetentionRule("instance_state", "t.key = 'expired'")
    await connection.execute("INSERT INTO instance_state (key) VALUES ('expired')")
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            "SELECT 1 FROM instance_state WHERE key = 'expired' FOR SHARE"
        )
        assert await connection.execute(rule.sql) == "DELETE 0"
    assert await connection.execute(rule.sql) == "DELETE 1"
