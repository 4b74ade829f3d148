from typing import Any

import pytest

from app.domain.conversations.speech import engines
from app.domain.conversations.speech.speech_jobs import Transcript
from tests.conversations.speech.calls import QUESTION, Voice
from tests.scripted_agents import Talker
from workers.main import WorkerProcess


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

    async def transcribe(*_: Any) -> Transcript:
        return Transcript(QUESTION)

    monkeypatch.setattr(engines, "_transcribe", transcribe)
