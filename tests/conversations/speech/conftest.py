from collections.abc import AsyncIterator
from typing import Any

import pytest
from litestar import Litestar

from app.domain.conversations.speech import engines
from tests.child_scripts import run_scripts_here
from tests.conversations.speech.calls import QUESTION, Voice
from tests.running_worker import run_worker
from tests.scripted_agents import Talker
from tests.stores import Stores
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


@pytest.fixture
def recogniser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Understands every recording as the same question, without a model."""

    async def transcribe(*_: Any) -> str:
        return QUESTION

    monkeypatch.setattr(engines, "_transcribe", transcribe)


@pytest.fixture
def scripts_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recordings are decoded in this process."""
    run_scripts_here(monkeypatch)
