from collections.abc import AsyncIterator

import pytest
from litestar import Litestar

from app.services import Services
from tests.messaging.notifications.center.post_office import PostOffice
from tests.messaging.notifications.provider_server import ProviderServer
from tests.running_worker import cancel_earlier_work, run_worker
from tests.stores import Stores
from tests.world import World
from workers.main import WorkerProcess


# Package scope, because other folders have tests that need mails and work to stay pending.
@pytest.fixture(scope="package")
async def center_worker(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    """Runs a worker that fans out events, dispatches messages and sends them."""
    await cancel_earlier_work(stores)
    async with run_worker(stores.settings, "deliveries", "default", slots=6) as process:
        yield process


@pytest.fixture
async def office(
    world: World, services: Services, center_worker: WorkerProcess, providers: ProviderServer
) -> PostOffice:
    """A new tenant, whose messages the worker dispatches and the stub of providers receives."""
    admin = await world.user("tenant_admin")
    return PostOffice(world, services, center_worker, providers, admin)
