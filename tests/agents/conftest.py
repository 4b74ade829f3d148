"""Fixtures of agents, sub-agents and their turns."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.kit.ids import new_id
from app.services import Services
from tests.agents.agent_loop import LoopRunner
from tests.agents.conversation_logs import AsyncTurns, execute
from tests.agents.sub_agent_requests import (
    attach_sub_agent,
    create_agent_id,
    create_direct,
    list_sub_agents,
)
from tests.model_server import ModelServer, Reply
from tests.talk import Talker
from tests.world import Client


@pytest.fixture
def loop_runner(services: Services, models: ModelServer) -> LoopRunner:
    return LoopRunner(services, models, new_id("loop"))


@pytest.fixture
async def delegating_agent(talk: Talker) -> Talker:
    """An agent that delegates its first message to a sub-agent."""
    child = await talk.agent("Kid")
    child.script(Reply(texts=["Done."], usage=(300, 30)))
    body = {"agent_id": child.agent_id}
    await talk.client.post(f"{talk.path}/sub-agents/attach", body)
    calls = [("delegate_to_kid", {"task": "Do it"})]
    talk.script(Reply(texts=[], calls=calls, usage=(10, 1)), Reply(texts=["Fine."], usage=(20, 2)))
    return talk


@pytest.fixture
async def async_turns(talk: Talker, services: Services) -> AsyncIterator[AsyncTurns]:
    yield AsyncTurns(talk, services)
    await execute(services, "DELETE FROM work WHERE tenant_id = $1", talk.client.tenant_id)


@pytest.fixture
async def parent(developer: Client) -> str:
    return await create_agent_id(developer, "Parent")


@pytest.fixture
async def child(developer: Client) -> str:
    return await create_agent_id(developer, "Child")


@pytest.fixture(params=["template", "direct"])
async def sub_agent(
    request: pytest.FixtureRequest, developer: Client, parent: str, child: str
) -> dict[str, Any]:
    """An attached and a direct sub-agent, as in the list of the parent."""
    if request.param == "template":
        await attach_sub_agent(developer, parent, child, delegation_prompt="Tasks")
    else:
        await create_direct(developer, parent, delegation_prompt="Tasks")
    (link,) = await list_sub_agents(developer, parent)
    return link
