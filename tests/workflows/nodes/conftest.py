from collections.abc import AsyncIterator

import pytest
from litestar import Litestar

from tests.running_worker import run_worker
from tests.stores import Stores
from workers.main import WorkerProcess


# Package scope, since it takes seconds to start one.
@pytest.fixture(scope="package")
async def worker(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    """A worker that runs workflows, what their nodes wait for, and notifications."""
    queues = ("workflows", "default", "tools", "chat", "deliveries")
    async with run_worker(stores.settings, *queues, slots=6) as process:
        yield process
