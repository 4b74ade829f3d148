from collections.abc import AsyncIterator

import pytest
from openai import AsyncOpenAI

from tests.conversations.embed.factories import create_embed_key
from tests.conversations.openai.completions import with_key
from tests.scripted_agents import Talker
from tests.server import Server


@pytest.fixture(scope="module")
async def base_client(server: Server) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(
        base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=30
    ) as client:
        yield client


@pytest.fixture
def client(base_client: AsyncOpenAI, talk: Talker) -> AsyncOpenAI:
    """A client with an access token of the agent's owner."""
    return with_key(base_client, talk.client.token)


@pytest.fixture
async def visitor(base_client: AsyncOpenAI, talk: Talker) -> AsyncOpenAI:
    """A client with an embed key that allows every origin."""
    key = await create_embed_key(talk.client, talk.agent_id)
    return with_key(base_client, key["api_key"])


@pytest.fixture(params=["token", "embed key"])
async def any_client(
    request: pytest.FixtureRequest, base_client: AsyncOpenAI, talk: Talker
) -> AsyncOpenAI:
    """A client with an access token, then one with an embed key."""
    key = talk.client.token
    if request.param == "embed key":
        key = (await create_embed_key(talk.client, talk.agent_id))["api_key"]
    return with_key(base_client, key)
