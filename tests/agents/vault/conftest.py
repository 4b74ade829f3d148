from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest

from app import bootstrap, container
from app.crypto.keyring import Keyring
from app.main import create_app
from app.services import Services
from tests.agents.vault.chain import delete_chains
from tests.agents.vault.servers import (
    DatabaseServer,
    MailServer,
    SshServer,
    TokenServer,
    run_mail_server,
    run_ssh_server,
)
from tests.child_scripts import run_scripts_here
from tests.stores import Stores
from tests.world import Client, World


@pytest.fixture(scope="session")
async def _running_token_server() -> AsyncIterator[TokenServer]:
    server = TokenServer()
    await server.start()
    yield server
    await server.close()


@pytest.fixture
def token_server(_running_token_server: TokenServer) -> Iterator[TokenServer]:
    yield _running_token_server
    _running_token_server.reset()


@pytest.fixture(scope="session")
async def database_server() -> AsyncIterator[DatabaseServer]:
    server = DatabaseServer()
    try:
        await server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
async def _running_mail_server() -> AsyncIterator[MailServer]:
    async with run_mail_server() as server:
        yield server


@pytest.fixture
def mail_server(_running_mail_server: MailServer) -> MailServer:
    _running_mail_server.logins.clear()
    return _running_mail_server


@pytest.fixture(scope="session")
async def ssh_server() -> AsyncIterator[SshServer]:
    async with run_ssh_server() as server:
        yield server


@pytest.fixture
def scripts_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """SSH keys are read in this process."""
    run_scripts_here(monkeypatch)


@pytest.fixture
async def other_processes(stores: Stores, services: Services) -> AsyncIterator[list[Services]]:
    """The services of two more processes."""
    processes = [container.build(stores.settings) for _ in range(2)]
    yield processes
    for process in processes:
        await process.close()


@pytest.fixture(scope="session")
async def chain_world(stores: Stores) -> AsyncIterator[World]:
    """A World with a database of its own: other tests must not see its broken chains."""
    settings = msgspec.structs.replace(
        await stores.create_database(), master_keys=Keyring.generate("old")
    )
    world = World(create_app(settings))
    await bootstrap.prepare(world.services.db, world.services.keyring, "enterprise")
    yield world
    await world.services.close()


@pytest.fixture
async def chain_services(chain_world: World) -> Services:
    """The services of a database without audit chains."""
    await delete_chains(chain_world.services)
    return chain_world.services


@pytest.fixture
async def chain_writer(chain_services: Services, chain_world: World) -> Client:
    return await chain_world.user("tenant_admin")
