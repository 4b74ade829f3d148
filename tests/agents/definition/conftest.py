"""Parents, and agents that become their sub-agents."""

from typing import Any

import pytest

from tests.agents.definition.sub_agent_requests import (
    attach_sub_agent,
    create_agent_id,
    create_direct_sub_agent,
    list_sub_agents,
)
from tests.world import Client


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
        await create_direct_sub_agent(developer, parent, delegation_prompt="Tasks")
    (link,) = await list_sub_agents(developer, parent)
    return link
