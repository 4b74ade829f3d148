"""Rows of agents and of their tables."""

from typing import Any

from app.services import Services
from db.session import ALL_TENANTS


async def fetch_agent(services: Services, agent_id: str) -> dict[str, Any]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        row = await (await tx.raw()).fetchrow("SELECT * FROM agents WHERE id = $1", agent_id)
    return dict(row)


async def count_rows(services: Services, table: str, column: str, value: str) -> int:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        sql = f"SELECT count(*) FROM {table} WHERE {column} = $1"
        return int(await (await tx.raw()).fetchval(sql, value))
