"""Embeddings through litellm."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from app.domain.agents.llm.errors import ModelFailed
from app.domain.agents.llm.litellm_adapter import LiteLLMAdapter
from tests.agents.llm.answers import KEY
from tests.agents.llm.litellm_providers import make_target, move_provider, wait_for_library_threads
from tests.peer import Handler, Peer

# litellm emits warnings at import and in use.
pytestmark = pytest.mark.filterwarnings("ignore")


class Embedder(Peer):
    """Embeddings of Cohere and Gemini: the length of each text. Refuses with `status`."""

    def __init__(self) -> None:
        super().__init__()
        self.status = 200
        self.left_out = 0

    def routes(self) -> dict[str, Handler]:
        return {"POST /embed": self._cohere, "POST /models/{model}": self._gemini}

    async def _cohere(self, request: web.Request) -> web.Response:
        if self.status != 200:
            body = {"message": f"no: {request.headers['Authorization']}"}
            return web.json_response(body, status=self.status)
        texts = (await request.json())["texts"]
        vectors = self._vectors(texts)
        meta = {"billed_units": {"input_tokens": len(texts)}}
        return web.json_response({"id": "e", "embeddings": {"float": vectors}, "meta": meta})

    async def _gemini(self, request: web.Request) -> web.Response:
        if self.status != 200:
            body = {"error": {"message": f"no: {request.headers['x-goog-api-key']}"}}
            return web.json_response(body, status=self.status)
        requests = (await request.json())["requests"]
        texts = [part["content"]["parts"][0]["text"] for part in requests]
        return web.json_response({"embeddings": [{"values": v} for v in self._vectors(texts)]})

    def _vectors(self, texts: list[str]) -> list[list[float]]:
        return [[float(len(text)), 1.0] for text in texts[self.left_out :]]


@pytest.fixture
async def embedder(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Embedder]:
    server = Embedder()
    await server.start()
    move_provider(monkeypatch, "cohere", f"{server.url}/embed")
    move_provider(monkeypatch, "gemini", server.url)
    yield server
    await wait_for_library_threads()
    await server.close()


EMBEDDING = pytest.mark.parametrize("model", ["cohere/embed-v4.0", "gemini/text-embedding-004"])


@pytest.mark.usefixtures("embedder")
async def test_embeddings_are_counted(litellm: LiteLLMAdapter) -> None:
    embeddings = await litellm.embed(make_target("cohere/embed-v4.0"), ["four", "four"])
    assert embeddings.vectors == [[4.0, 1.0], [4.0, 1.0]]
    assert embeddings.prompt_tokens == 2


@EMBEDDING
@pytest.mark.usefixtures("embedder")
async def test_embeddings_come_in_the_order_of_their_texts(
    litellm: LiteLLMAdapter, model: str
) -> None:
    embeddings = await litellm.embed(make_target(model), ["a", "bbb", "cc"])
    assert [vector[0] for vector in embeddings.vectors] == [1.0, 3.0, 2.0]


@EMBEDDING
async def test_embeddings_that_are_left_out_are_a_failure(
    litellm: LiteLLMAdapter, embedder: Embedder, model: str
) -> None:
    embedder.left_out = 1
    with pytest.raises(ModelFailed) as caught:
        await litellm.embed(make_target(model), ["a", "b"])
    assert caught.value.reason == "broken"


@EMBEDDING
async def test_a_failure_to_embed_does_not_contain_the_key(
    litellm: LiteLLMAdapter, embedder: Embedder, model: str
) -> None:
    embedder.status = 429
    with pytest.raises(ModelFailed) as caught:
        await litellm.embed(make_target(model), ["a"])
    assert caught.value.reason == "rate_limited"
    assert KEY not in caught.value.message
    assert "***" in caught.value.message


async def test_a_provider_without_embeddings_refuses_without_a_request(
    litellm: LiteLLMAdapter,
) -> None:
    with pytest.raises(ModelFailed) as caught:
        await litellm.embed(make_target("anthropic/claude"), ["a"])
    assert caught.value.reason == "refused"
    assert caught.value.message == "anthropic/claude: the provider anthropic has no embeddings"
