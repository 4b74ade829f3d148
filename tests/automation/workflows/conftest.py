from collections.abc import AsyncIterator

import pytest

from app.services import Services
from app.templating.expressions import Expressions
from tests.running_worker import cancel_earlier_work, run_worker
from tests.stores import Stores
from workers.main import WorkerProcess


@pytest.fixture(scope="module")
async def worker(services: Services, stores: Stores) -> AsyncIterator[WorkerProcess]:
    """A worker that runs workflows and what their nodes wait for, within this process."""
    await cancel_earlier_work(stores)
    queues = ("workflows", "default", "tools", "chat")
    expressions = services.get(Expressions)
    async with run_worker(stores.settings, *queues, slots=6, expressions=expressions) as process:
        yield process
