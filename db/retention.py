"""Deletes expired rows in batches. Each area declares its own rules."""

import math
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import asyncpg
import msgspec

BATCH: Final = 1000
# For tables whose rows take rows of other tables along, through foreign keys.
CASCADE_BATCH: Final = 20


class RetentionRule(msgspec.Struct, frozen=True):
    """Deletes the rows of a table, aliased `t`, that meet a condition. With `clears`, an SQL list
    of assignments, it updates them instead; the condition must not hold afterwards.

    `order_by` names a column of a B-tree index, so that each batch starts at the oldest row and
    reads no rows that are kept. A BRIN index does not serve: once space is used again, it takes
    every part of the table for old.

    `per` names a table whose rows have retention periods of their own, such as "agents a". The
    condition then compares `t` with one of them, and the index starts with the compared columns.
    """

    table: str
    condition: str
    order_by: str
    per: str = ""
    clears: str = ""
    batch: int = BATCH

    @property
    def sql(self) -> str:
        """One batch. Rows that are locked are left to the next one, so that it waits for nobody."""
        change = f"UPDATE {self.table} SET {self.clears}"
        expired = f"""
            SELECT t.ctid AS row_id FROM {self.table} t WHERE {self.condition}
            ORDER BY {self.order_by} LIMIT {self.batch} FOR UPDATE OF t SKIP LOCKED
        """
        if self.per:
            # Planned as one index scan for each row of `per`. A plain join may read both tables.
            expired = f"""
            SELECT e.row_id FROM {self.per} CROSS JOIN LATERAL ({expired}) e LIMIT {self.batch}
            """
        return f"""
        {change if self.clears else f"DELETE FROM {self.table}"} WHERE ctid = ANY(ARRAY({expired}))
        """


# Tables that belong to no area.
PLATFORM_RULES: Final = (
    RetentionRule(
        "idempotency_keys", "t.created_at < now() - interval '24 hours'", order_by="t.created_at"
    ),
    RetentionRule("attempts", "t.since < now() - interval '2 days'", order_by="t.since"),
)


class Round(NamedTuple):
    """`has_more` is True when a rule ran out of time. Rules that failed run again in the next
    round; `failures` has the table and the error of each.
    """

    has_more: bool
    failures: list[tuple[str, Exception]]


async def delete_expired(
    connection: asyncpg.Connection,
    rules: Iterable[RetentionRule],
    *,
    rule_seconds: float = math.inf,
    statement_seconds: float = 60.0,
    clock: Callable[[], float] = time.monotonic,
) -> Round:
    """Applies each rule until no rows are left or its own time is up, so that no rule takes the
    time of another. Each batch is a transaction of its own, so that no lock lasts long.
    """
    has_more, failures = False, list[tuple[str, Exception]]()
    for rule in (*PLATFORM_RULES, *rules):
        deadline = clock() + rule_seconds
        try:
            while await _change_batch(connection, rule, statement_seconds) == rule.batch:
                if clock() >= deadline:
                    has_more = True
                    break
        except (asyncpg.PostgresError, TimeoutError) as error:
            if connection.is_closed():
                raise
            failures.append((rule.table, error))
    return Round(has_more, failures)


async def _change_batch(connection: asyncpg.Connection, rule: RetentionRule, seconds: float) -> int:
    status: str = await connection.execute(rule.sql, timeout=seconds)
    return int(status.rpartition(" ")[2])


# The time of the last round that had nothing left to do.
_IS_RECENT = """
SELECT 1 FROM instance_state
WHERE key = 'clean_up'
  AND number BETWEEN extract(epoch FROM now()) - $1::float8 AND extract(epoch FROM now())
"""
_RECORD = """
INSERT INTO instance_state (key, number) VALUES ('clean_up', floor(extract(epoch FROM now())))
ON CONFLICT (key) DO UPDATE SET number = excluded.number
"""


async def has_recent_round(connection: asyncpg.Connection, seconds: float) -> bool:
    """True when any worker has completed a round in the last `seconds`."""
    return await connection.fetchval(_IS_RECENT, seconds) is not None


async def record_round(connection: asyncpg.Connection) -> None:
    await connection.execute(_RECORD)
