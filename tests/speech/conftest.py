from collections.abc import AsyncIterator

import pytest
from litestar import Litestar

from tests.running_worker import run_worker
from tests.speech.calls import Voice
from tests.stores import Stores
from tests.talk import Talker
from workers.main import WorkerProcess


@pytest.fixture(scope="module")
async def speech_worker(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    """A worker that runs speech, within this process."""
    async with run_worker(stores.settings, "speech") as process:
        yield process


@pytest.fixture
def voice(talk: Talker) -> Voice:
    """A new agent and its owner; no worker runs."""
    return Voice(talk)


@pytest.fixture
def served_voice(voice: Voice, speech_worker: WorkerProcess) -> Voice:
    """Like `voice`, with a worker."""
    return voice
