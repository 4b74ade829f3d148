"""Statements on the rows of chat."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
import pytest
from sqlalchemy import event

from app.services import Services
from db.session import ALL_TENANTS


async def execute(services: Services, sql: str, *args: object) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(sql, *args)


async def fetch_rows(services: Services, sql: str, *args: object) -> list[Any]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return list(await (await tx.raw()).fetch(sql, *args))


async def fetch_row(services: Services, sql: str, *args: object) -> Any:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return await (await tx.raw()).fetchrow(sql, *args)


async def fetch_value(services: Services, sql: str, *args: object) -> Any:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return await (await tx.raw()).fetchval(sql, *args)


@contextmanager
def record_statements(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Yields the statements that this process sends to Postgres, with BEGIN and COMMIT."""
    statements: list[str] = []

    def record_method(name: str) -> Any:
        original = getattr(asyncpg.Connection, name)

        async def call(self: Any, query: str, *args: Any, **more: Any) -> Any:
            statements.append(query)
            return await original(self, query, *args, **more)

        return call

    def record_orm(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    engine = services.db.engine.sync_engine
    event.listen(engine, "before_cursor_execute", record_orm)
    try:
        with monkeypatch.context() as patch:
            for name in ("fetch", "fetchrow", "fetchval", "execute", "executemany"):
                patch.setattr(asyncpg.Connection, name, record_method(name))
            yield statements
    finally:
        event.remove(engine, "before_cursor_execute", record_orm)
