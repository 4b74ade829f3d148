"""Deletes expired rows in batches. Each area declares its own rules."""

import math
import time
from collections.abc import Callable, Iterable
from typing import Final

import asyncpg
import msgspec

BATCH: Final = 1000


class RetentionRule(msgspec.Struct, frozen=True):
    """Deletes the rows of a table, aliased `t`, that meet a condition. With `clears`, an SQL list
    of assignments, it updates them instead; the condition must not hold afterwards.

    `order_by` names the column of an index, so that each batch starts at the oldest row.
    """

    table: str
    condition: str
    join: str = ""
    clears: str = ""
    order_by: str = ""

    @property
    def sql(self) -> str:
        """One batch. Rows that are locked are left to the next one, so that it waits for nobody."""
        change = f"UPDATE {self.table} SET {self.clears}"
        order = f"ORDER BY {self.order_by}" if self.order_by else ""
        return f"""
        {change if self.clears else f"DELETE FROM {self.table}"} WHERE ctid = ANY(ARRAY(
            SELECT t.ctid FROM {self.table} t {self.join} WHERE {self.condition} {order}
            LIMIT {BATCH} FOR UPDATE OF t SKIP LOCKED
        ))
        """


# Tables that belong to no area.
PLATFORM_RULES: Final = (
    RetentionRule(
        "idempotency_keys", "t.created_at < now() - interval '24 hours'", order_by="t.created_at"
    ),
    RetentionRule("attempts", "t.since < now() - interval '2 days'", order_by="t.since"),
)


async def delete_expired(
    connection: asyncpg.Connection,
    rules: Iterable[RetentionRule],
    *,
    seconds: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Deletes one batch of each rule in turn until no rows are left or the time is up. Returns True
    when rows may be left. Each batch is a transaction of its own, so that no lock lasts long.
    """
    deadline = clock() + seconds
    remaining = [*PLATFORM_RULES, *rules]
    while remaining:
        full = []
        for rule in remaining:
            if clock() >= deadline:
                return True
            count = (await connection.execute(rule.sql)).rpartition(" ")[2]
            if count == str(BATCH):
                full.append(rule)
        remaining = full
    return False
