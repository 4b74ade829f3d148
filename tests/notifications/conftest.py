from collections.abc import AsyncIterator

import pytest

from app.kit.egress import Egress, Guard
from tests.notifications.provider_server import ProviderServer


@pytest.fixture(scope="session")
async def _running_providers() -> AsyncIterator[ProviderServer]:
    server = ProviderServer()
    await server.start()
    yield server
    await server.close()


@pytest.fixture
def providers(_running_providers: ProviderServer) -> ProviderServer:
    """The stub of all hosted providers, without what earlier tests set."""
    _running_providers.reset()
    return _running_providers


@pytest.fixture
async def loopback() -> AsyncIterator[Egress]:
    """A client that may reach the stub."""
    egress = Egress(Guard(("127.0.0.1", "localhost")))
    yield egress
    await egress.close()


@pytest.fixture
async def public_only() -> AsyncIterator[Egress]:
    """A client that may reach public addresses only."""
    egress = Egress(Guard(()))
    yield egress
    await egress.close()
