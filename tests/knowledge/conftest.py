from collections.abc import AsyncIterator

import pytest
from litestar import Litestar

from tests.knowledge.librarian import Librarian, librarian_of
from tests.running_worker import run_worker
from tests.stores import Stores
from tests.talk import Talker
from workers.main import WorkerProcess


@pytest.fixture(scope="module")
async def reader(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    """A worker that reads documents and keeps their tables, within this process."""
    async with run_worker(stores.settings, "ingest", "default") as process:
        yield process


@pytest.fixture
def librarian(talk: Talker, reader: WorkerProcess) -> Librarian:
    return librarian_of(talk)
