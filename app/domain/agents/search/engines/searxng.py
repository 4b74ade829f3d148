"""A SearXNG instance, which the operator runs or chooses."""

from typing import Any, ClassVar

import msgspec
from yarl import URL

from app.net.egress import Egress, Guard

from .http import as_text, decode_json, fetch
from .protocol import Hit, SearchRequest

_STRICT, _OFF = "2", "0"


class _Result(msgspec.Struct):
    url: Any = None
    title: Any = None
    content: Any = None


class _Answer(msgspec.Struct):
    results: list[_Result]


def open_egress(address: str) -> Egress:
    """Returns a client for this address, which the caller closes together with its guard. The
    operator chose the address, so it may be a private one; but no other may be.
    """
    return Egress(Guard((URL(address).raw_host or "",)))


class Searxng:
    key_provider: ClassVar[str | None] = None

    def __init__(self, egress: Egress, address: str) -> None:
        self._egress = egress
        self._url = URL(address.rstrip("/") + "/search")

    async def search(self, request: SearchRequest) -> list[Hit]:
        safe_search = _STRICT if request.safe_search else _OFF
        query = {"q": request.query, "format": "json", "safesearch": safe_search}
        headers = {"Accept": "application/json"}
        body = await fetch(self._egress, "GET", self._url.with_query(query), headers=headers)
        # Its scores have no upper bound, so the rank serves as the score.
        return [
            Hit(as_text(result.title), as_text(result.url), as_text(result.content))
            for result in decode_json(body, _Answer).results
        ]
