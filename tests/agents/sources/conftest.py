from collections.abc import AsyncIterator

import pytest
from litestar import Litestar

from app.domain.agents.sources import web
from tests.agents.knowledge.reading import read_here
from tests.agents.sources.curator import Curator
from tests.agents.sources.web_site import WebSite, open_web_site
from tests.running_worker import run_worker
from tests.scripted_agents import Talker
from tests.stores import Stores
from workers.main import WorkerProcess


@pytest.fixture(scope="module")
async def reader(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    """A worker that syncs sources and reads their documents, without pauses between requests."""
    with pytest.MonkeyPatch.context() as patch:
        read_here(patch)
        patch.setattr(web, "DELAY_SECONDS", 0.0)
        async with run_worker(stores.settings, "sources", "ingest", "default") as process:
            yield process


@pytest.fixture
async def site() -> AsyncIterator[WebSite]:
    async with open_web_site() as site:
        yield site


@pytest.fixture
def curator(talk: Talker, reader: WorkerProcess) -> Curator:
    return Curator(talk.client, talk.agent_id)
