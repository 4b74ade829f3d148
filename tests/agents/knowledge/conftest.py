from collections.abc import AsyncIterator

import pytest
from litestar import Litestar

from app.domain.agents.knowledge import parsing
from tests.agents.knowledge.librarian import Librarian, librarian_of
from tests.agents.knowledge.reading import read_here, read_in_child
from tests.running_worker import run_worker
from tests.scripted_agents import Talker
from tests.stores import Stores
from workers.main import WorkerProcess


@pytest.fixture(scope="module")
async def reader(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    """A worker that reads documents and keeps their tables, within this process. It reads the
    files here too: most of a test would be the start of a process for each of them.
    """
    with pytest.MonkeyPatch.context() as patch:
        read_here(patch)
        async with run_worker(stores.settings, "ingest", "default") as process:
            yield process


@pytest.fixture
def _read_in_children(reader: WorkerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker of the test reads each file in a process without rights."""
    monkeypatch.setattr(parsing, "read_chunks", read_in_child)


@pytest.fixture
def librarian(talk: Talker, reader: WorkerProcess) -> Librarian:
    return librarian_of(talk)
