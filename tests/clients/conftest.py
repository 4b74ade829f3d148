import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from openai import AsyncOpenAI

from app.kit import node
from tests.clients.journey import Journey
from tests.identity.service_keys.keys import create_key
from tests.scripted_agents import Talker
from tests.server import Server

# Before the libraries are imported: they ask nobody for prices and tell nobody about their use.
os.environ |= {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "LANGSMITH_TRACING": "false",
}
JAVASCRIPT = Path(__file__).parent / "javascript"


@pytest.fixture
async def journey(talk: Talker, server: Server) -> Journey:
    """An agent with a tool of its own, for a program with a service key."""
    helper = await talk.with_helper()
    key = await create_key(talk.client)
    return Journey(talk, helper, f"{server.url}/v1", key["key"])


@pytest.fixture
async def client(journey: Journey) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(
        base_url=journey.url, api_key=journey.key, max_retries=0, timeout=30
    ) as client:
        yield client


@pytest.fixture(scope="session")
def javascript() -> Path:
    """The folder of the JavaScript clients, with their packages."""
    node.install(JAVASCRIPT)
    return JAVASCRIPT
