"""Plain SQL for the statements that every request, turn, job or delivery runs.

An ORM round trip costs several times the same SQL on asyncpg. These calls run on the connection of
the caller's transaction and take the tenant first, as `$1`: a statement on tenant-owned rows says
`tenant_id = $1`, or `($1::text IS NULL OR tenant_id = $1)` where super_admin reaches all.
"""

from collections.abc import Iterable
from typing import Any, Protocol

import asyncpg

from db.session import AllTenants, Tx, Unscoped


class Row(Protocol):
    """A row of asyncpg: values by column name."""

    def __getitem__(self, column: str) -> Any: ...


def was_refused(error: BaseException) -> bool:
    """The server itself refused a statement, which did nothing; the connection goes on."""
    away = (asyncpg.PostgresConnectionError, asyncpg.OperatorInterventionError)
    return isinstance(error, asyncpg.PostgresError) and not isinstance(error, away)


def tenant_of(tx: Tx) -> str | None:
    """The tenant of this transaction for `$1`; None stands for all of them."""
    if tx.scope is None:
        raise Unscoped("this transaction names no tenant: open it with a scope")
    return None if isinstance(tx.scope, AllTenants) else tx.scope


async def row(tx: Tx, tenant: str | None, sql: str, *args: object) -> Row | None:
    found: Row | None = await (await tx.raw()).fetchrow(sql, tenant, *args)
    return found


async def rows(tx: Tx, tenant: str | None, sql: str, *args: object) -> list[Row]:
    return list(await (await tx.raw()).fetch(sql, tenant, *args))


async def value(tx: Tx, tenant: str | None, sql: str, *args: object) -> Any:
    return await (await tx.raw()).fetchval(sql, tenant, *args)


async def execute(tx: Tx, tenant: str | None, sql: str, *args: object) -> int:
    """Run one statement and give the number of rows it touched."""
    status: str = await (await tx.raw()).execute(sql, tenant, *args)
    count = status.rpartition(" ")[2]
    return int(count) if count.isdigit() else 0


async def many(tx: Tx, sql: str, args: Iterable[tuple[object, ...]]) -> None:
    await (await tx.raw()).executemany(sql, list(args))
