"""The embedded recogniser: loaded once, or missing with a reason."""

import asyncio
import json
import subprocess
import sys
import threading
from typing import Any

import pytest

from app.domain.conversations.speech import espeak, moonshine
from app.domain.conversations.speech.moonshine import Recogniser
from app.kit import optional
from app.kit.errors import Unavailable
from app.kit.optional import Feature
from app.services import Services
from tests.assertions import refused, wait_until
from tests.conversations.speech.calls import Voice, is_removed, needs_recogniser
from tests.conversations.speech.recordings import tone
from tests.processes import ROOT
from workers.main import WorkerProcess

_MISSING = Feature("speech recognition", group="planted", module="planted_module")
_SECOND = memoryview(bytes(4 * 16_000))


class _CountingModel:
    """Counts its loads and the calls that run at the same time."""

    def __init__(self) -> None:
        self.loaded = self.closed = self.running = self.most_running = 0
        self.threads: set[int] = set()
        self._changed = threading.Condition()

    def load(self) -> "_CountingModel":
        self.loaded += 1
        return self

    def transcribe(self, piece: memoryview) -> str:
        with self._changed:
            self.threads.add(threading.get_ident())
            self.running += 1
            self.most_running = max(self.most_running, self.running)
            self._changed.notify_all()
            # Gives a second call the time to start, if another thread makes one.
            self._changed.wait_for(lambda: self.running > 1, timeout=0.02)
            self.running -= 1
        return f"{piece.nbytes} bytes" if piece.nbytes else ""

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> _CountingModel:
    model = _CountingModel()
    monkeypatch.setattr(moonshine, "_load", model.load)
    return model


async def test_the_model_is_loaded_once_and_used_in_one_thread(model: _CountingModel) -> None:
    recogniser, pieces = Recogniser(), [_SECOND, memoryview(b""), _SECOND]
    texts = await asyncio.gather(*(recogniser.transcribe(pieces) for _ in range(5)))
    assert texts == ["64000 bytes 64000 bytes"] * 5
    assert (model.loaded, model.most_running, len(model.threads)) == (1, 1, 1)
    assert threading.get_ident() not in model.threads
    await recogniser.close()
    assert model.closed == 1


async def test_a_recogniser_that_was_not_used_closes(model: _CountingModel) -> None:
    await Recogniser().close()
    assert (model.loaded, model.closed) == (0, 0)


async def test_a_library_that_cannot_be_loaded_is_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_name: str) -> Any:
        raise OSError("libmissing.so: cannot open shared object file")

    monkeypatch.setattr(moonshine, "import_module", fail)
    monkeypatch.setattr(optional, "is_installed", lambda _feature: True)
    recogniser = Recogniser()
    with pytest.raises(Unavailable, match="cannot be loaded: OSError"):
        await recogniser.transcribe([_SECOND])
    await recogniser.close()


# In a process of its own: the library's answer to noise depends on what the process did before.
_LISTEN = """
import asyncio, json
import numpy as np
from app.domain.conversations.speech.moonshine import Recogniser

async def listen():
    recogniser, noise = Recogniser(), np.random.default_rng(1).normal(size=16_000 * 5)
    for samples in (np.zeros(0), np.zeros(10), noise * 0.1, noise * 0.01):
        piece = memoryview(samples.astype(np.float32).tobytes())
        yield await recogniser.transcribe([piece])
    await recogniser.close()

async def main():
    print(json.dumps([text async for text in listen()]))

asyncio.run(main())
"""


@needs_recogniser
def test_the_real_model_hears_no_words_in_silence_and_noise() -> None:
    command = [sys.executable, "-c", _LISTEN]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert json.loads(printed.stdout.splitlines()[-1]) == ["", "", "", ""]


async def test_without_the_package_voice_chat_answers_with_the_reason_and_speech_works(
    served_voice: Voice,
    speech_worker: WorkerProcess,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(optional, "SPEECH_RECOGNITION", _MISSING)
    monkeypatch.setitem(speech_worker.services.area_objects, Recogniser, Recogniser())
    error = refused(await served_voice.send(tone()), 503, "unavailable")
    assert "planted-module is not installed" in error["message"]
    assert await served_voice.speak("Hello")
    await wait_until(lambda: is_removed(services, served_voice))


async def test_without_the_embedded_voice_speech_is_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(espeak, "find_spec", lambda _name: None)
    with pytest.raises(Unavailable, match="espeakng-loader is not installed"):
        await espeak.speak("Hello", None)
