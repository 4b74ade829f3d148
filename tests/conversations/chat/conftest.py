from collections.abc import AsyncIterator

import pytest

from app.kit.ids import new_id
from app.services import Services
from tests.conversations.chat.agent_loop import LoopRunner
from tests.conversations.chat.delegation_scripts import script_delegation
from tests.conversations.chat.stream_helpers import SilentModel
from tests.model_server import ModelServer
from tests.scripted_agents import Talker


@pytest.fixture
async def silent_model() -> AsyncIterator[SilentModel]:
    model = SilentModel()
    await model.start()
    yield model
    await model.close()


@pytest.fixture
def loop_runner(services: Services, models: ModelServer) -> LoopRunner:
    return LoopRunner(services, models, new_id("loop"))


@pytest.fixture
async def delegating_agent(talk: Talker) -> Talker:
    """An agent that delegates its first message to a sub-agent."""
    await script_delegation(talk)
    return talk
