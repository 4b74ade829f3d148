"""Parts of an instance of its own, which a test may stop, kill and start again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from litestar import Litestar

from app import bootstrap
from app.main import create_app
from app.services import Services
from db.session import ALL_TENANTS
from tests.stores import Stores


@asynccontextmanager
async def start_stores(**settings: Any) -> AsyncIterator[Stores]:
    """Postgres and Redis, with these settings changed."""
    stores = Stores()
    stores.settings = msgspec.structs.replace(stores.settings, **settings)
    try:
        await stores.start()
        yield stores
    finally:
        stores.close()


@asynccontextmanager
async def start_app(stores: Stores) -> AsyncIterator[Litestar]:
    app = create_app(stores.settings)
    services: Services = app.state.services
    await bootstrap.prepare(services.db, services.keyring, "enterprise")
    yield app
    await services.close()


async def fetch_value(services: Services, sql: str, *args: object) -> Any:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return await (await tx.raw()).fetchval(sql, *args)


async def wait_for_count(
    services: Services, sql: str, expected: int, *args: object, seconds: float = 90
) -> None:
    async with asyncio.timeout(seconds):
        while await fetch_value(services, sql, *args) < expected:  # noqa: ASYNC110  # other processes write
            await asyncio.sleep(0.05)
