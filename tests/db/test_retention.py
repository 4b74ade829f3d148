"""Deleting expired rows: in batches, for a limited time per rule, whatever other rules do."""

import itertools
from collections.abc import AsyncIterator
from functools import partial

import asyncpg
import pytest

from app.services import Services
from db.retention import BATCH, RetentionRule, delete_expired
from db.session import ALL_TENANTS

DELETED = RetentionRule("deleted_rows", "t.age > 1", order_by="t.age")
CLEARED = RetentionRule(
    "cleared_rows", "t.age > 1 AND t.content <> ''", clears="content = ''", order_by="t.age"
)
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
    assert await delete_expired(connection, (DELETED, CLEARED)) == (False, [])
    assert await _count_expired(connection) == [0, 0]
    assert await connection.fetchval("SELECT count(*) FROM deleted_rows") == 1
    sql = "SELECT count(*) FROM cleared_rows WHERE content = 'text'"
    assert await connection.fetchval(sql) == 1


async def test_a_statement_changes_one_batch(
    connection: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[RetentionRule, str]] = [(DELETED, "DELETE"), (CLEARED, "UPDATE")]
    for rule, command in cases:
        with subtests.test(rule=rule, command=command):
            assert await connection.execute(rule.sql) == f"{command} {BATCH}"


async def test_each_rule_has_its_own_time(connection: asyncpg.Connection) -> None:
    ticks = itertools.count()
    # The clock is read before the first batch and after each full one.
    run_round = partial(
        delete_expired, connection, (DELETED, CLEARED), rule_seconds=2, clock=lambda: next(ticks)
    )
    assert await run_round() == (True, [])
    assert await _count_expired(connection) == [EXPIRED - 2 * BATCH] * 2
    assert await run_round() == (False, [])
    assert await _count_expired(connection) == [0, 0]


async def test_a_rule_that_fails_does_not_stop_the_others(connection: asyncpg.Connection) -> None:
    failing = RetentionRule("deleted_rows", "1 / (t.age - t.age) > 0", order_by="t.age")
    has_more, failures = await delete_expired(connection, (failing, DELETED, CLEARED))
    assert not has_more
    assert [(table, type(error)) for table, error in failures] == [
        ("deleted_rows", asyncpg.DivisionByZeroError)
    ]
    assert await _count_expired(connection) == [0, 0]


async def test_a_statement_that_takes_too_long_is_cancelled(connection: asyncpg.Connection) -> None:
    slow = RetentionRule("deleted_rows", "pg_sleep(600) IS NULL", order_by="t.age")
    has_more, failures = await delete_expired(connection, (slow,), statement_seconds=0.1)
    assert not has_more
    assert ("deleted_rows", TimeoutError) in [(table, type(error)) for table, error in failures]
    assert await delete_expired(connection, (DELETED, CLEARED)) == (False, [])


async def test_a_locked_row_is_left_to_the_next_batch(
    services: Services, connection: asyncpg.Connection
) -> None:
    rule = RetentionRule("instance_state", "t.key = 'expired'", order_by="t.key")
    await connection.execute("INSERT INTO instance_state (key) VALUES ('expired')")
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            "SELECT 1 FROM instance_state WHERE key = 'expired' FOR SHARE"
        )
        assert await connection.execute(rule.sql) == "DELETE 0"
    assert await connection.execute(rule.sql) == "DELETE 1"
