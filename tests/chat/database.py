"""Statements on the rows of chat."""

from typing import Any

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
