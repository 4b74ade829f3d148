import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.domain.agents.llm import gateway
from app.domain.agents.llm.gateway import Models
from app.domain.agents.llm.litellm_adapter import LiteLLMAdapter
from app.domain.agents.llm.openai_adapter import OpenAIAdapter
from app.net.egress import Egress, Guard
from app.services import Services
from tests.agents.llm.litellm_providers import Anthropic, Google, ImportedLibrary, move_provider
from tests.model_server import ModelServer


@pytest.fixture
async def adapter() -> AsyncIterator[OpenAIAdapter]:
    created = OpenAIAdapter(Egress(Guard(("127.0.0.1",)), limit=0, per_host=0))
    yield created
    await created.close()


@pytest.fixture
def _short_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "RETRY_SECONDS", (0.01, 0.02))


@pytest.fixture
async def model_gateway(services: Services, _short_retries: None) -> AsyncIterator[Models]:
    created = Models(Guard(("127.0.0.1",)), services.redis, has_local=False)
    yield created
    await created.close()


@pytest.fixture(scope="session")
async def imported() -> AsyncIterator[ImportedLibrary]:
    """litellm, imported by two callers at once, without a network."""
    looked_up: list[Any] = []

    def refuse(*arguments: Any, **_options: Any) -> None:
        looked_up.append(arguments[0])
        raise socket.gaierror("no network")

    adapter = LiteLLMAdapter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", refuse)
        first, second = await asyncio.gather(adapter._litellm(), adapter._litellm())
    assert first is second
    yield ImportedLibrary(first, looked_up)
    # litellm closes its other clients, but not those of the openai package; uvloop cannot be closed
    # while one of their connections is open.
    for client in list(first.in_memory_llm_clients_cache.cache_dict.values()):
        if type(client).__name__ == "AsyncOpenAI":
            await client.close()
    await first.close_litellm_async_clients()


@pytest.fixture
def litellm(imported: ImportedLibrary) -> LiteLLMAdapter:
    adapter = LiteLLMAdapter()
    adapter._library = imported.module
    return adapter


@pytest.fixture
def ai21(
    litellm: LiteLLMAdapter, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> LiteLLMAdapter:
    """The provider behind litellm that speaks OpenAI's wire format."""
    move_provider(monkeypatch, "ai21", models.url)
    return litellm


@pytest.fixture
async def anthropic_server() -> AsyncIterator[Anthropic]:
    server = Anthropic()
    await server.start()
    yield server
    await server.close()


@pytest.fixture
def anthropic(
    litellm: LiteLLMAdapter, anthropic_server: Anthropic, monkeypatch: pytest.MonkeyPatch
) -> LiteLLMAdapter:
    move_provider(monkeypatch, "anthropic", anthropic_server.url)
    return litellm


@pytest.fixture
async def google_server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Google]:
    server = Google()
    await server.start()
    move_provider(monkeypatch, "gemini", server.url)
    move_provider(monkeypatch, "cohere", f"{server.url}/v2/chat")
    yield server
    await server.close()
