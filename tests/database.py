"""SQL for tests, across all tenants: for states that the API cannot produce or show."""

from typing import Any

import pytest

from app.services import Services
from db.session import ALL_TENANTS, Tx

Row = dict[str, Any]


async def fetch_rows(services: Services, sql: str, *args: object) -> list[Row]:
    """Returns the rows of a statement that runs outside of a transaction."""
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return [dict(row) for row in await (await tx.raw()).fetch(sql, *args)]


async def run_sql(services: Services, sql: str, *args: object) -> list[Row]:
    """Runs a statement in a transaction; returns the rows that it returns."""
    async with services.db.tx(ALL_TENANTS) as tx:
        return [dict(row) for row in await (await tx.raw()).fetch(sql, *args)]


def lose_commit_replies(patch: pytest.MonkeyPatch, tenant_id: str) -> None:
    """Lets transactions of a tenant fail after their commit, as when the process dies there."""
    commit = Tx.commit

    async def commit_and_fail(tx: Tx) -> None:
        await commit(tx)
        if tx.scope == tenant_id and not tx._autocommit:
            raise ConnectionResetError("the reply is lost")

    patch.setattr(Tx, "commit", commit_and_fail)
