"""One Postgres, Redis and application for all tests of the folder, which they stop and kill."""

from collections.abc import AsyncIterator, Iterator
from contextlib import closing

import pytest
from litestar import Litestar

from app.services import Services
from tests.database import run_sql
from tests.faults.instance import start_app, start_stores
from tests.ports import free_port
from tests.processes import Processes
from tests.stores import Stores
from tests.world import World

# A worker that a test killed may have left work with a lease.
_CANCEL = "UPDATE work SET state = 'cancelled', finished_at = now() WHERE state <> 'done'"


@pytest.fixture(scope="session")
async def own_stores() -> AsyncIterator[Stores]:
    async with start_stores(
        lease_seconds=2.0,
        port=free_port(),
        # Enough retries for deliveries whose worker is killed more than once.
        webhook_retry_delays=(0, *[1] * 9),
        transcription_model="hearing/ear-in-faults",
    ) as stores:
        yield stores


@pytest.fixture(scope="session")
async def _own_app(own_stores: Stores) -> AsyncIterator[Litestar]:
    async with start_app(own_stores) as app:
        yield app


@pytest.fixture
async def own_app(_own_app: Litestar) -> Litestar:
    """The application, with nothing left to do from earlier tests."""
    services: Services = _own_app.state.services
    await run_sql(services, _CANCEL)
    await services.redis.flushall()
    return _own_app


@pytest.fixture
def own_services(own_app: Litestar) -> Services:
    services: Services = own_app.state.services
    return services


@pytest.fixture
def own_world(own_app: Litestar) -> World:
    return World(own_app)


@pytest.fixture
def processes(own_stores: Stores, own_app: Litestar) -> Iterator[Processes]:
    with closing(Processes(own_stores.settings)) as processes:
        yield processes
