"""Plain SQL for the statements that every request, turn, job or delivery runs.

An ORM statement takes several times as long as the same SQL on asyncpg. These functions use the
connection of the caller's transaction and pass the tenant as `$1`: a statement on tenant-owned rows
has `tenant_id = $1`, or `($1::text IS NULL OR tenant_id = $1)` where super_admin may read all.
"""

from collections.abc import Iterable
from typing import Any, Protocol

import asyncpg

from db.session import AllTenants, Tx, Unscoped


class Row(Protocol):
    """A row of asyncpg: values by column name."""

    def __getitem__(self, column: str) -> Any: ...


def was_refused(error: BaseException) -> bool:
    """True when Postgres rejected the statement, which had no effect; the connection is usable."""
    connection_errors = (asyncpg.PostgresConnectionError, asyncpg.OperatorInterventionError)
    return isinstance(error, asyncpg.PostgresError) and not isinstance(error, connection_errors)


def tenant_of(tx: Tx) -> str | None:
    """Returns the tenant of the transaction for `$1`; None means all tenants."""
    if tx.scope is None:
        raise Unscoped("this transaction names no tenant: open it with a scope")
    return None if isinstance(tx.scope, AllTenants) else tx.scope


async def row(tx: Tx, tenant: str | None, sql: str, *args: object) -> Row | None:
    record: Row | None = await (await tx.raw()).fetchrow(sql, tenant, *args)
    return record


async def rows(tx: Tx, tenant: str | None, sql: str, *args: object) -> list[Row]:
    return list(await (await tx.raw()).fetch(sql, tenant, *args))


async def value(tx: Tx, tenant: str | None, sql: str, *args: object) -> Any:
    return await (await tx.raw()).fetchval(sql, tenant, *args)


async def execute(tx: Tx, tenant: str | None, sql: str, *args: object) -> int:
    """Runs one statement and returns the number of rows that it changed."""
    status: str = await (await tx.raw()).execute(sql, tenant, *args)
    count = status.rpartition(" ")[2]
    return int(count) if count.isdigit() else 0


async def many(tx: Tx, sql: str, args: Iterable[tuple[object, ...]]) -> None:
    await (await tx.raw()).executemany(sql, list(args))
