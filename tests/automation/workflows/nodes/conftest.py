from collections.abc import AsyncIterator

import pytest

from app.services import Services
from app.templating.expressions import Expressions
from tests.running_worker import run_worker
from tests.stores import Stores
from workers.main import WorkerProcess


# Package scope, since it takes seconds to start one.
@pytest.fixture(scope="package")
async def worker(services: Services, stores: Stores) -> AsyncIterator[WorkerProcess]:
    """A worker that runs workflows, what their nodes wait for, and notifications."""
    queues = ("workflows", "default", "tools", "chat", "deliveries")
    expressions = services.get(Expressions)
    async with run_worker(stores.settings, *queues, slots=6, expressions=expressions) as process:
        yield process
