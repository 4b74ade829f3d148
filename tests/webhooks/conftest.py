import asyncio
from collections.abc import AsyncIterator

import pytest
from litestar import Litestar

from app import container
from app.services import Services
from tests.stores import Stores
from tests.webhooks.receiver import Receiver, receiving
from tests.webhooks.sender import Sender
from tests.world import Client
from workers.main import WorkerProcess


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


# It ends with the tests of the folder: others look at mails and work that nobody has taken yet.
@pytest.fixture(scope="package")
async def courier(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    """A worker that hands out events and delivers them, within this process."""
    services = container.build(stores.settings)
    process = WorkerProcess(services, ["deliveries", "default"])
    running = asyncio.create_task(process.run())
    yield process
    process.stopped.set()
    await running
    await services.close()


@pytest.fixture
def sender(developer: Client, services: Services, courier: WorkerProcess) -> Sender:
    return Sender(developer, services, courier)
