import asyncio
from collections.abc import AsyncIterator

import pytest
from litestar import Litestar

from app import parts as shared
from tests.stores import Stores
from tests.webhooks.receiver import Receiver, receiving
from workers.main import WorkerProcess


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


@pytest.fixture(scope="session")
async def courier(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    """A worker that hands out events and delivers them, within this process."""
    parts = shared.build(stores.settings)
    process = WorkerProcess(parts, ["deliveries", "default"])
    running = asyncio.create_task(process.run())
    yield process
    process.stopped.set()
    await running
    await parts.close()
