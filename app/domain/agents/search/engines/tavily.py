"""Tavily's search API, with the tenant's key."""

from typing import Any, ClassVar, Final

import msgspec
from yarl import URL

from app.net.egress import Egress

from .http import as_text, decode_json, fetch
from .protocol import Hit, SearchFailed, SearchRequest

ADDRESS: Final = "https://api.tavily.com"
# Tavily does not document which of them is the answer to a key without safe search.
_NOT_ALLOWED = {400, 403}


class _Result(msgspec.Struct):
    url: Any = None
    title: Any = None
    content: Any = None
    score: Any = None


class _Answer(msgspec.Struct):
    results: list[_Result]


class Tavily:
    """Tavily filters adult results for keys of an enterprise plan only. With another key a search
    with `safe_search` fails when Tavily refuses it; it is not repeated without the filter.
    """

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
        body = msgspec.json.encode(_build_question(request))
        try:
            answer = await fetch(self._egress, "POST", self._url, headers=headers, body=body)
        except SearchFailed as error:
            if request.safe_search and error.status in _NOT_ALLOWED:
                raise _explain_refusal(error) from error
            raise
        return [_build_hit(result) for result in decode_json(answer, _Answer).results]


def _build_question(request: SearchRequest) -> dict[str, Any]:
    """The faster depths of search know no safe search."""
    question = {
        "query": request.query,
        "max_results": request.max_results,
        "search_depth": "basic",
    }
    return question | {"safe_search": True} if request.safe_search else question


def _explain_refusal(error: SearchFailed) -> SearchFailed:
    message = f"{error}; safe_search needs a key of Tavily's enterprise plan, or must be off"
    return SearchFailed(error.reason, message, error.status)


def _build_hit(result: _Result) -> Hit:
    score = result.score if isinstance(result.score, int | float) else None
    return Hit(as_text(result.title), as_text(result.url), as_text(result.content), score)
