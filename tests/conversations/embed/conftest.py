import pytest

from tests.conversations.embed.factories import create_agent
from tests.conversations.embed.sites import Site, create_site
from tests.scripted_agents import Talker
from tests.world import Client


@pytest.fixture
async def agent_id(developer: Client) -> str:
    return await create_agent(developer)


@pytest.fixture
async def site(talk: Talker) -> Site:
    """A site whose key allows every origin."""
    return await create_site(talk)


@pytest.fixture
async def shop(talk: Talker) -> Site:
    """A site whose key allows one host."""
    return await create_site(talk, "shop.example.com")
