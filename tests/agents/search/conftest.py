from collections.abc import AsyncIterator, Callable, Iterator

import msgspec
import pytest
from litestar import Litestar

from app.domain.agents.search.engines.brave import Brave
from app.domain.agents.search.engines.duckduckgo import DuckDuckGo
from app.domain.agents.search.engines.registry import SearchEngines
from app.domain.agents.search.engines.tavily import Tavily
from app.kit import logs
from app.main import create_app
from app.net.egress import Egress, Guard
from app.services import Services
from tests.agents.search.engine_server import EngineServer
from tests.model_server import ModelServer
from tests.scripted_agents import Talker, talker
from tests.stores import Stores
from tests.world import Client, World


@pytest.fixture(scope="session")
async def _running_engine() -> AsyncIterator[EngineServer]:
    server = EngineServer()
    await server.start()
    yield server
    await server.close()


@pytest.fixture
def engine(_running_engine: EngineServer) -> EngineServer:
    """The stub of all engines, without what earlier tests set."""
    _running_engine.reset()
    return _running_engine


@pytest.fixture(scope="session")
async def _search_world(
    app: Litestar, stores: Stores, _running_engine: EngineServer
) -> AsyncIterator[World]:
    settings = msgspec.structs.replace(stores.settings, searxng_url=_running_engine.url)
    world = World(create_app(settings))
    egress, engines = world.services.egress, world.services.get(SearchEngines)
    engines._engines |= {
        "duckduckgo": DuckDuckGo(egress, f"{_running_engine.url}/html/"),
        "brave": Brave(egress, _running_engine.url),
        "tavily": Tavily(egress, _running_engine.url),
    }
    yield world
    await world.services.close()


@pytest.fixture
def world(_search_world: World, engine: EngineServer) -> World:
    """An application whose engines are the stub."""
    return _search_world


@pytest.fixture
def services(world: World) -> Services:
    return world.services


@pytest.fixture
async def admin(world: World) -> Client:
    return await world.user("tenant_admin")


@pytest.fixture
async def talk(world: World, models: ModelServer) -> Talker:
    return await talker(world, models)


@pytest.fixture
def log_lines(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[], str]]:
    """Returns what has been logged since, from the lowest level."""
    logs.configure("debug", "json")
    yield lambda: capsys.readouterr().err
    logs.configure("warning", "json")


@pytest.fixture
async def loopback() -> AsyncIterator[Egress]:
    """A client that may reach the stub."""
    egress = Egress(Guard(("127.0.0.1",)))
    yield egress
    await egress.close()


@pytest.fixture
async def public_only() -> AsyncIterator[Egress]:
    """A client that may reach public addresses only."""
    egress = Egress(Guard(()))
    yield egress
    await egress.close()
