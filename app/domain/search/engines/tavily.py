"""Tavily's search API, with the tenant's key. It has no switch for safe search."""

from typing import Any, ClassVar, Final

import msgspec
from yarl import URL

from app.domain.search.engines.http import as_text, decode_json, fetch
from app.domain.search.engines.protocol import Hit, SearchRequest
from app.kit.egress import Egress

ADDRESS: Final = "https://api.tavily.com"


class _Result(msgspec.Struct):
    url: Any = None
    title: Any = None
    content: Any = None
    score: Any = None


class _Answer(msgspec.Struct):
    results: list[_Result]


class Tavily:
    key_provider: ClassVar[str | None] = "tavily"

    def __init__(self, egress: Egress, address: str = ADDRESS) -> None:
        self._egress = egress
        self._url = URL(address) / "search"

    async def search(self, request: SearchRequest) -> list[Hit]:
        headers = {
            "Accept": "application/json",
            "Authorization": f"Bearer {request.api_key}",
            "Content-Type": "application/json",
        }
        question = {"query": request.query, "max_results": request.max_results}
        body = await fetch(
            self._egress, "POST", self._url, headers=headers, body=msgspec.json.encode(question)
        )
        return [_build_hit(result) for result in decode_json(body, _Answer).results]


def _build_hit(result: _Result) -> Hit:
    score = result.score if isinstance(result.score, int | float) else None
    return Hit(as_text(result.title), as_text(result.url), as_text(result.content), score)
