import time
from collections.abc import AsyncIterator, Iterator

import pytest

from app.services import Services
from app.templating.expressions import Expressions
from tests.messaging.deliveries.receiver import Receiver, run_receiver
from tests.messaging.deliveries.sender import CreateSender, Sender
from tests.running_worker import cancel_earlier_work, run_worker
from tests.stores import Stores
from tests.world import Client, World
from workers.main import WorkerProcess


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with run_receiver() as receiver:
        yield receiver


# Package scope, because other folders have tests that need mails and work to stay pending.
@pytest.fixture(scope="package")
async def courier(services: Services, stores: Stores) -> AsyncIterator[WorkerProcess]:
    """Runs a worker that fans out events and delivers them, within this process."""
    await cancel_earlier_work(stores)
    expressions = services.get(Expressions)
    async with run_worker(
        stores.settings, "deliveries", "default", expressions=expressions
    ) as process:
        yield process


@pytest.fixture
async def sender(
    developer: Client, services: Services, courier: WorkerProcess
) -> AsyncIterator[Sender]:
    sender = Sender(developer, services, courier)
    yield sender
    await sender.cancel_pending_work()


@pytest.fixture
async def create_sender(
    world: World, services: Services, courier: WorkerProcess
) -> AsyncIterator[CreateSender]:
    """Creates senders, each of a tenant of its own."""
    senders: list[Sender] = []

    async def create() -> Sender:
        senders.append(Sender(await world.user(), services, courier))
        return senders[-1]

    yield create
    for sender in senders:
        await sender.cancel_pending_work()


@pytest.fixture
def tokyo_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sets the server's time zone to one far from UTC."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
