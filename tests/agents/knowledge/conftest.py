import asyncio
from collections.abc import AsyncIterator

import pytest
from litestar import Litestar

from app.domain.agents.knowledge import parsing
from app.domain.agents.knowledge.chunks import Chunk
from app.domain.agents.knowledge.parsing import Kind, Unreadable
from app.domain.agents.knowledge.readers import formats
from app.domain.agents.knowledge.readers.cutting import Refused
from tests.agents.knowledge.librarian import Librarian, librarian_of
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
        patch.setattr(parsing, "read_chunks", _read_here)
        async with run_worker(stores.settings, "ingest", "default") as process:
            yield process


_read_in_child = parsing.read_chunks


async def _read_here(content: bytes, kind: Kind) -> list[Chunk]:
    try:
        chunks = await asyncio.to_thread(formats.read_chunks, content, kind)
    except Refused as error:
        raise Unreadable(str(error)) from None
    return [Chunk(*chunk) for chunk in chunks]


@pytest.fixture
def _read_in_children(reader: WorkerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker of the test reads each file in a process without rights."""
    monkeypatch.setattr(parsing, "read_chunks", _read_in_child)


@pytest.fixture
def librarian(talk: Talker, reader: WorkerProcess) -> Librarian:
    return librarian_of(talk)
