# Before Litestar, which would import advanced-alchemy with all optional libraries that it finds.
import db.base  # noqa: F401

# isort: split
from collections.abc import AsyncIterator, Iterator

import pytest
from litestar import Litestar

from app import bootstrap
from app.kit import logs, memory
from app.main import create_app
from app.services import Services
from db import connection_use
from tests.event_loop import use_uvloop
from tests.failing_cases import FailingCases
from tests.generated_values import ignore_constants_of_modules
from tests.http.routes import ROUTES
from tests.lengths import IS_LONG
from tests.model_server import ModelServer, serving
from tests.password_costs import full_cost, lowest_cost
from tests.running_worker import run_worker
from tests.scripted_agents import Talker, talker
from tests.security.grants import restore_grants
from tests.server import Server
from tests.stores import Stores
from tests.world import Client, World
from workers.main import WorkerProcess

pytest_plugins = ["tests.slow_files"]
memory.collect_rarely()
use_uvloop()
if not IS_LONG:
    ignore_constants_of_modules()


def pytest_collection_finish() -> None:
    """A collection that walks all tests and modules takes longer than most tests."""
    memory.tune_gc()
    memory.return_large_blocks()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not IS_LONG:
        long = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


@pytest.fixture
def subtests(subtests: pytest.Subtests) -> FailingCases:
    return FailingCases(subtests)


@pytest.fixture(scope="session")
async def stores() -> AsyncIterator[Stores]:
    stores = Stores()
    try:
        await stores.start()
        yield stores
    finally:
        stores.close()


@pytest.fixture(autouse=True, scope="session")
def _quiet_logs() -> None:
    logs.configure("warning", "json")


@pytest.fixture(autouse=True, scope="session")
def _no_waits_in_transactions() -> None:
    """Nothing but the database is waited for while a connection is held."""
    connection_use.report_to(connection_use.refuse)


@pytest.fixture(autouse=True, scope="session")
def _lowest_password_cost() -> Iterator[None]:
    """Thousands of tests sign in; `full_password_cost` is for those that depend on the cost."""
    with lowest_cost():
        yield


@pytest.fixture
def full_password_cost() -> Iterator[None]:
    with full_cost():
        yield


@pytest.fixture(scope="session")
async def app(stores: Stores) -> AsyncIterator[Litestar]:
    app = create_app(stores.settings, routes=ROUTES)
    services: Services = app.state.services
    await bootstrap.prepare(services.db, services.keyring, "enterprise")
    yield app
    await services.close()


@pytest.fixture(scope="session")
def server(app: Litestar, stores: Stores) -> Iterator[Server]:
    """A web process on the same stores as `app`."""
    server = Server(stores.settings)
    try:
        server.wait()
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
def services(app: Litestar) -> Services:
    services: Services = app.state.services
    return services


@pytest.fixture
async def restored_grants(services: Services) -> AsyncIterator[None]:
    """For tests that change the permissions of roles."""
    async with restore_grants(services):
        yield


@pytest.fixture(scope="session")
def world(app: Litestar) -> World:
    """Creates tenants and users of `app`."""
    return World(app)


@pytest.fixture(scope="session")
async def product(app: Litestar, stores: Stores) -> AsyncIterator[World]:
    """The application as it is served, without routes of tests, on the same stores."""
    world = World(create_app(stores.settings))
    yield world
    await world.services.close()


@pytest.fixture(scope="session")
async def models() -> AsyncIterator[ModelServer]:
    """A server with scripted models; each test uses model names of its own."""
    async with serving() as models:
        yield models


@pytest.fixture(scope="session")
async def worker(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    """A worker that runs tools, within this process."""
    async with run_worker(stores.settings, "tools") as process:
        yield process


@pytest.fixture
async def talk(world: World, models: ModelServer) -> Talker:
    """A new agent with a scripted model, and its owner."""
    return await talker(world, models)


@pytest.fixture
def anonymous(world: World) -> Client:
    return world.anonymous()


@pytest.fixture
async def super_admin(world: World) -> Client:
    return await world.user("super_admin")


@pytest.fixture
async def admin(world: World) -> Client:
    return await world.user("tenant_admin")


@pytest.fixture
async def developer(world: World) -> Client:
    return await world.user("agent_developer")
