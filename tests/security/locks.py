"""Waiting for database locks."""

import asyncio

from app.services import Services
from db.session import ALL_TENANTS


async def wait_for_blocked_transaction(services: Services) -> None:
    """Waits until a transaction waits for a lock."""
    async with asyncio.timeout(10):
        while True:
            async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
                if await (await tx.raw()).fetchval("SELECT 1 FROM pg_locks WHERE NOT granted"):
                    return
            await asyncio.sleep(0.01)
