"""A reranker that rates a passage by how many of the question's words it has."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from tests.peer import Handler, Peer

_KINDS = {"/v2/rerank": "cohere", "/v1/rerank": "jina", "/rerank": "tei"}


class RerankServer(Peer):
    """Each path has the form of one provider. `status` and `body` replace the answer; `released`
    holds it back.
    """

    cancels_handlers = True

    def __init__(self) -> None:
        super().__init__()
        self.status = 200
        self.body: Any = None
        self.released = asyncio.Event()
        self.released.set()
        self.requests: list[tuple[str, str | None, dict[str, Any]]] = []

    def routes(self) -> dict[str, Handler]:
        return {f"POST {path}": self._rank for path in _KINDS}

    async def _rank(self, request: web.Request) -> web.Response:
        fields = await request.json()
        self.requests.append((request.path, request.headers.get("Authorization"), fields))
        await self.released.wait()
        if isinstance(self.body, bytes):
            return web.Response(body=self.body, status=self.status, content_type="application/json")
        if self.body is not None or self.status != 200:
            return web.json_response(self.body, status=self.status)
        kind = _KINDS[request.path]
        if kind == "tei":
            return _answer_as_tei(fields)
        ranking = [
            {"index": index, "relevance_score": score}
            for index, score in _rate(fields["query"], fields["documents"])
        ]
        if kind == "cohere":
            meta = {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}}
            return web.json_response({"id": "1", "results": ranking, "meta": meta})
        name = "data" if "voyage" in fields["model"] else "results"
        return web.json_response({name: ranking, "usage": {"total_tokens": 90}})


def _answer_as_tei(fields: dict[str, Any]) -> web.Response:
    if "texts" not in fields:
        message = "Failed to deserialize the JSON body into the target type: missing field `texts`"
        return web.Response(text=message, status=422)
    rated = _rate(fields["query"], fields["texts"])
    return web.json_response([{"index": index, "score": score} for index, score in rated])


def _rate(query: str, texts: list[str]) -> list[tuple[int, float]]:
    """The best first, as all providers return them."""
    words = query.lower().split()
    shares = [sum(word in text.lower() for word in words) / len(words) for text in texts]
    return sorted(enumerate(shares), key=lambda item: -item[1])


@asynccontextmanager
async def serving_rerankers() -> AsyncIterator[RerankServer]:
    server = RerankServer()
    await server.start()
    try:
        yield server
    finally:
        await server.close()
