"""Forms whose messages the local model reads, which may be busy; the scripted server plays it."""

import time
from collections.abc import AsyncIterator

import msgspec
import pytest
from litestar import Litestar

from app.domain.agents.llm.gateway import LOCAL_MODEL
from app.domain.agents.llm.local_queue import LocalQueue
from app.domain.agents.llm.protocol import QueueLimits
from app.main import create_app
from app.observe import heartbeat
from app.observe.heartbeat import Beat
from tests.agents.llm.local_model import announce_local_model
from tests.forms.api import EMAIL, TEXT, create_form
from tests.forms.conversation.chat import Chat, start
from tests.model_server import ModelServer, Reply
from tests.stores import Stores
from tests.world import World

SENTENCE = "well, people around here mostly call me Ada"


@pytest.fixture(scope="module")
async def local_world(app: Litestar, stores: Stores, models: ModelServer) -> AsyncIterator[World]:
    del app
    world = World(create_app(msgspec.structs.replace(stores.settings, local_model=True)))
    async with announce_local_model(world.services, models.url, slots=1):
        yield world
    await world.services.close()


@pytest.fixture
async def chat(local_world: World, models: ModelServer) -> Chat:
    models.requests.clear()
    models.script(LOCAL_MODEL, Reply(texts=['{"name": "Ada"}']))
    developer = await local_world.user("agent_developer")
    return await start(local_world.anonymous(), await create_form(developer, TEXT, EMAIL))


async def test_the_local_model_reads_a_message(chat: Chat, models: ModelServer) -> None:
    assert (await chat.say(SENTENCE))["fields_completed"] == 1
    assert len(models.asked(LOCAL_MODEL)) == 1


async def test_a_message_is_read_without_a_model_that_is_busy(
    chat: Chat, models: ModelServer, local_world: World
) -> None:
    server = Beat("model", heartbeat.own_name(), slots=1)
    queue = LocalQueue(local_world.services.redis)
    holder = queue.create_ticket(server, "ten_other", QueueLimits())
    assert [position async for position in holder.wait()] == []
    try:
        started = time.monotonic()
        assert (await chat.say(SENTENCE))["fields_completed"] == 1
        assert time.monotonic() - started < 5
    finally:
        holder.leave()
    assert models.asked(LOCAL_MODEL) == []
