"""Deletes expired rows in batches. Each area declares its own rules."""

from collections.abc import Iterable
from typing import Final

import asyncpg
import msgspec

_BATCH = 5000


class RetentionRule(msgspec.Struct, frozen=True):
    """Deletes the rows of a table, aliased `t`, that meet a condition. With `clears`, an SQL list
    of assignments, it updates them instead.
    """

    table: str
    condition: str
    join: str = ""
    clears: str = ""

    @property
    def sql(self) -> str:
        if self.clears:
            return f"UPDATE {self.table} t SET {self.clears} {self.join} WHERE {self.condition}"
        return f"""
        DELETE FROM {self.table} WHERE ctid IN (
            SELECT t.ctid FROM {self.table} t {self.join} WHERE {self.condition} LIMIT {_BATCH}
        )
        """


# Tables that belong to no area.
PLATFORM_RULES: Final = (
    RetentionRule("idempotency_keys", "t.created_at < now() - interval '24 hours'"),
    RetentionRule("attempts", "t.since < now() - interval '2 days'"),
)


async def delete_expired(connection: asyncpg.Connection, rules: Iterable[RetentionRule]) -> None:
    """Runs each statement in its own transaction, so that no lock lasts long."""
    for rule in (*PLATFORM_RULES, *rules):
        while (await connection.execute(rule.sql)).rpartition(" ")[2] == str(_BATCH):
            pass
