from collections.abc import AsyncIterator

import pytest
from litestar import Litestar

from tests.child_scripts import run_scripts_here
from tests.running_worker import run_worker
from tests.stores import Stores
from workers.main import WorkerProcess


@pytest.fixture(scope="module")
async def speech_worker(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    """A worker that runs speech, within this process."""
    async with run_worker(stores.settings, "speech") as process:
        yield process


@pytest.fixture
def scripts_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recordings are decoded in this process."""
    run_scripts_here(monkeypatch)
