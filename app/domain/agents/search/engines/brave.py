"""Brave's search API, with the tenant's key."""

from typing import Any, ClassVar, Final

import msgspec
from yarl import URL

from app.net.egress import Egress

from .http import as_text, decode_json, fetch
from .protocol import Hit, SearchRequest

ADDRESS: Final = "https://api.search.brave.com"
# Brave refuses longer queries.
_MAX_WORDS = 50


class _Result(msgspec.Struct):
    url: Any = None
    title: Any = None
    description: Any = None
    family_friendly: Any = None


class _Web(msgspec.Struct):
    results: list[_Result] = []


class _Answer(msgspec.Struct):
    """`web` is absent when nothing was found."""

    type: str
    web: _Web | None = None


class Brave:
    key_provider: ClassVar[str | None] = "brave"

    def __init__(self, egress: Egress, address: str = ADDRESS) -> None:
        self._egress = egress
        self._url = URL(address) / "res/v1/web/search"

    async def search(self, request: SearchRequest) -> list[Hit]:
        query = {
            "q": " ".join(request.query.split()[:_MAX_WORDS]),
            "count": str(request.max_results),
            "safesearch": "strict" if request.safe_search else "off",
            "result_filter": "web",
            "text_decorations": "false",
        }
        headers = {"Accept": "application/json", "X-Subscription-Token": request.api_key}
        body = await fetch(self._egress, "GET", self._url.with_query(query), headers=headers)
        web = decode_json(body, _Answer).web or _Web()
        return [
            Hit(as_text(result.title), as_text(result.url), as_text(result.description))
            for result in web.results
            if not (request.safe_search and result.family_friendly is False)
        ]
