"""Chat by voice while workers are killed."""

import asyncio
from collections.abc import Iterator
from contextlib import closing

import psutil
import pytest

from app.services import Services
from tests.asking import until, wait_until
from tests.faults.instance import fetch_value
from tests.model_server import ModelServer, Reply
from tests.preloaded import PreloadedProcess
from tests.processes import Processes
from tests.speech.calls import Voice, is_removed
from tests.speech.recordings import tone
from tests.stores import Stores
from tests.talk import give_key, talker
from tests.world import World

WORKER = """
import os
from app import settings
from workers import main
main.main(settings.load(os.environ), ["speech"])
"""

pytestmark = pytest.mark.timeout(120)


class Workers(Processes):
    def start(self) -> PreloadedProcess:
        return self.python("-c", WORKER)


@pytest.fixture
def workers(own_stores: Stores) -> Iterator[Workers]:
    with closing(Workers(own_stores.settings)) as workers:
        yield workers


@pytest.fixture
async def voice(own_world: World, models: ModelServer) -> Voice:
    voice = Voice(await talker(own_world, models))
    await give_key(voice.talk.client, models, "hearing")
    return voice


async def test_a_request_gets_its_answer_although_the_worker_was_killed_while_transcribing(
    workers: Workers, voice: Voice, models: ModelServer, own_services: Services
) -> None:
    """A transcription has no effect, so another worker repeats it."""
    killed, model = asyncio.Event(), "ear-in-faults"
    models.script(model, Reply(texts=["Late"], hold=killed), Reply(texts=["What time is it?"]))
    first = workers.start()
    request = asyncio.create_task(voice.say(tone()))
    await until(lambda: models.asked(model), 30)
    workers.kill(first)
    killed.set()
    workers.start()
    assert (await request)["transcript"] == "What time is it?"
    assert len(voice.talk.asked) == 1
    attempts = "SELECT attempt FROM work WHERE kind = 'speech.run' ORDER BY created_at DESC LIMIT 1"
    assert await fetch_value(own_services, attempts) == 2
    await wait_until(lambda: is_removed(own_services, voice))


async def test_a_text_is_spoken_although_the_worker_was_killed_while_speaking(
    workers: Workers, voice: Voice, own_services: Services
) -> None:
    worker = workers.start()
    request = asyncio.create_task(voice.request_speech({"text": "Hello " * 100}))
    await until(lambda: psutil.Process(worker.pid).children(), 30)
    workers.kill(worker)
    workers.start()
    answer = await request
    assert (answer.status_code, answer.headers["content-type"]) == (200, "audio/mpeg")
    await wait_until(lambda: is_removed(own_services, voice))
