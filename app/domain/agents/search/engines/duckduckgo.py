"""DuckDuckGo's page without scripts. It needs no key."""

from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import urlencode

import msgspec
from yarl import URL

from app.net.egress import Egress
from app.sandbox import child_process
from app.sandbox.child_process import Limits, ProcessFailed, ScriptRefused

from .http import fetch
from .protocol import Hit, SearchFailed, SearchRequest

ADDRESS: Final = "https://html.duckduckgo.com/html/"
_STRICT, _OFF = "1", "-2"
_ALL_REGIONS = "wt-wt"
_HEADERS = {
    "Content-Type": "application/x-www-form-urlencoded",
    "Accept": "text/html",
    "User-Agent": "Mozilla/5.0 (compatible; Parley)",
}
_SCRIPT = Path(__file__).with_name("duckduckgo_child.py")
_LIMITS = Limits(seconds=10.0, cpu_seconds=3, memory_mib=512)
_decoder = msgspec.json.Decoder(list[tuple[str, str, str]])


class DuckDuckGo:
    key_provider: ClassVar[str | None] = None

    def __init__(self, egress: Egress, address: str = ADDRESS) -> None:
        self._egress = egress
        self._address = URL(address)

    async def search(self, request: SearchRequest) -> list[Hit]:
        safe_search = _STRICT if request.safe_search else _OFF
        form = {"q": request.query, "kl": _ALL_REGIONS, "kp": safe_search}
        page = await fetch(
            self._egress, "POST", self._address, headers=_HEADERS, body=urlencode(form).encode()
        )
        return await _read_page(page)


async def _read_page(page: bytes) -> list[Hit]:
    try:
        response = await child_process.request(_SCRIPT, page, limits=_LIMITS)
    except (ScriptRefused, ProcessFailed) as error:
        message = "the search engine's answer is not a page of results"
        raise SearchFailed("bad_response", message) from error
    return [Hit(*result) for result in _decoder.decode(response.body)]
