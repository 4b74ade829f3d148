"""Chat by voice while workers are killed."""

import asyncio
from collections.abc import Iterator
from contextlib import closing

import psutil
import pytest

from app.services import Services
from tests.assertions import until, wait_until
from tests.conversations.speech.calls import Voice, is_removed
from tests.conversations.speech.recordings import tone
from tests.faults.instance import fetch_value
from tests.model_server import ModelServer, Reply
from tests.preloaded import PreloadedProcess
from tests.processes import Processes
from tests.running_worker import run_worker
from tests.scripted_agents import give_key, talker
from tests.stores import Stores
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


async def test_requests_get_their_answers_although_the_worker_was_killed(
    workers: Workers, voice: Voice, models: ModelServer, own_services: Services
) -> None:
    """While it transcribed one and spoke the other. Neither has an effect, so another worker
    repeats both.
    """
    killed, model = asyncio.Event(), "ear-in-faults"
    models.script(model, Reply(texts=["Late"], hold=killed), Reply(texts=["What time is it?"]))
    first = workers.start()
    question = asyncio.create_task(voice.say(tone()))
    await until(lambda: models.asked(model), 30)
    # The recording is decoded, so the next child process speaks.
    speech = asyncio.create_task(voice.request_speech({"text": "Hello " * 20}))
    await until(lambda: psutil.Process(first.pid).children(), 30)
    workers.kill(first)
    killed.set()
    async with run_worker(own_services.settings, "speech", slots=2):
        assert (await question)["transcript"] == "What time is it?"
        answer = await speech
        await wait_until(lambda: is_removed(own_services, voice))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "audio/mpeg")
    assert len(voice.talk.asked) == 1
    attempts = "SELECT array_agg(attempt) FROM work WHERE kind = 'speech.run' AND tenant_id = $1"
    tenant_id = voice.talk.client.tenant_id
    assert await fetch_value(own_services, attempts, tenant_id) == [2, 2]
