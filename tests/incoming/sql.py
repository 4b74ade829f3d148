"""Direct access to the database, for states that the API cannot produce or show."""

import asyncio
from typing import Any

from app.services import Services
from db.session import ALL_TENANTS

# The connections that wait for a lock in a statement like $1.
LOCK_WAITERS = """
SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1
"""


async def fetch_rows(services: Services, sql: str, *args: object) -> list[Any]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return list(await (await tx.raw()).fetch(sql, *args))


async def wait_for_rows(services: Services, sql: str, *args: object) -> list[Any]:
    """Repeats the query until it returns rows."""
    async with asyncio.timeout(20):
        while not (rows := await fetch_rows(services, sql, *args)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return rows


async def list_bodies(services: Services, webhook: dict[str, Any]) -> list[bytes]:
    """Returns the stored bodies of the webhook's payloads."""
    sql = "SELECT body FROM incoming_payloads WHERE webhook_id = $1 ORDER BY id"
    return [row["body"] for row in await fetch_rows(services, sql, webhook["id"])]
