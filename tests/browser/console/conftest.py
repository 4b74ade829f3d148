from collections.abc import AsyncIterator

import pytest
from litestar import Litestar
from playwright.async_api import Page

from tests.agents.knowledge.reading import read_here
from tests.browser.console.console import Console
from tests.running_worker import run_worker
from tests.server import Server
from tests.stores import Stores
from workers.main import WorkerProcess


@pytest.fixture
async def console(page: Page, server: Server) -> AsyncIterator[Console]:
    """Nobody is signed in yet. A breach of the content security policy, a request to elsewhere or
    a warning fails the test.
    """
    console = Console(page, server.url)
    yield console
    console.detach()
    assert console.problems == []


@pytest.fixture(scope="package")
async def reader(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    """A worker that reads documents within this process, which loads the embedder once."""
    with pytest.MonkeyPatch.context() as patch:
        read_here(patch)
        async with run_worker(stores.settings, "ingest", "default") as process:
            yield process
