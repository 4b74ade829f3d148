from collections.abc import AsyncIterator

import pytest
from litestar import Litestar

from app.domain.messaging.notifications import jobs
from app.domain.messaging.outbox.egress import OutboxEgress
from app.net.egress import Guard
from app.services import Services
from tests.messaging.notifications.provider_server import ProviderServer
from tests.messaging.notifications.sender import ChannelSender
from tests.running_worker import cancel_earlier_work, run_worker
from tests.stores import Stores
from tests.world import Client
from workers.main import WorkerProcess


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
async def loopback() -> AsyncIterator[OutboxEgress]:
    """A client that may reach the stub."""
    egress = OutboxEgress(Guard(("127.0.0.1", "localhost")))
    yield egress
    await egress.close()


@pytest.fixture
async def public_only() -> AsyncIterator[OutboxEgress]:
    """A client that may reach public addresses only."""
    egress = OutboxEgress(Guard(()))
    yield egress
    await egress.close()


# Module scope, because other modules have tests that need work to stay pending.
@pytest.fixture(scope="module")
async def sending_worker(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    """A worker that dispatches and sends notifications, within this process."""
    await cancel_earlier_work(stores)
    async with run_worker(stores.settings, "deliveries", "default", slots=6) as process:
        yield process


@pytest.fixture
async def sender(
    developer: Client,
    services: Services,
    sending_worker: WorkerProcess,
    providers: ProviderServer,
) -> AsyncIterator[ChannelSender]:
    sender = ChannelSender(developer, services, sending_worker, providers)
    yield sender
    await sender.cancel_pending_work()


@pytest.fixture
def slow_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries become due when a test says so, not while it looks at them."""
    monkeypatch.setattr(jobs, "RETRY_DELAYS", (0.0, 60.0, 60.0))
