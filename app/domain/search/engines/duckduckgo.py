"""DuckDuckGo's page without scripts. It needs no key."""

import asyncio
import html
from typing import Any, ClassVar, Final
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

from yarl import URL

from app.domain.search.engines.http import fetch
from app.domain.search.engines.protocol import Hit, SearchFailed, SearchRequest
from app.kit.egress import Egress

ADDRESS: Final = "https://html.duckduckgo.com/html/"
_ORIGIN = "https://duckduckgo.com/"
_STRICT, _OFF = "1", "-2"
_ALL_REGIONS = "wt-wt"
_HEADERS = {
    "Content-Type": "application/x-www-form-urlencoded",
    "Accept": "text/html",
    "User-Agent": "Mozilla/5.0 (compatible; Parley)",
}
# A page has 10 to 30 results.
_MAX_RESULTS = 100


def _with_class(name: str) -> str:
    return f"contains(concat(' ', normalize-space(@class), ' '), ' {name} ')"


_RESULTS = f"//div[{_with_class('result')}]"
_LINK = f".//a[{_with_class('result__a')}]"
_SNIPPET = f".//*[{_with_class('result__snippet')}]"
_NO_RESULTS = "//*[contains(@class, 'no-result')]"


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
        return await asyncio.to_thread(parse_page, page)


def parse_page(page: bytes) -> list[Hit]:
    """Returns the results without ads. Raises SearchFailed when it is no page of results."""
    from lxml import etree

    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(page, parser)
    except etree.LxmlError as error:
        raise _unreadable() from error
    if root is None:
        raise _unreadable()
    results = root.xpath(_RESULTS)
    if not results and not root.xpath(_NO_RESULTS):
        raise _unreadable()
    hits = [_parse_result(result) for result in results[:_MAX_RESULTS]]
    return [hit for hit in hits if hit is not None]


def _unreadable() -> SearchFailed:
    return SearchFailed("bad_response", "the search engine's answer is no page of results")


def _parse_result(result: Any) -> Hit | None:
    links = result.xpath(_LINK)
    url = resolve_link(links[0].get("href", "")) if links else None
    if url is None:
        return None
    snippets = result.xpath(_SNIPPET)
    return Hit(_text(links[0]), url, _text(snippets[0]) if snippets else "")


def _text(element: Any) -> str:
    """Returns HTML without tags: the parser has resolved the entities of the page."""
    return html.escape("".join(element.itertext()), quote=False)


def resolve_link(href: str) -> str | None:
    """Returns where a link of the page leads; None for an ad."""
    try:
        url = urljoin(_ORIGIN, href.strip())
        target = _find_redirect_target(url)
        return None if _is_ad(target) else target
    except ValueError:
        return None


def _find_redirect_target(url: str) -> str:
    """`/l/?uddg=…` of DuckDuckGo redirects to the result."""
    parts = urlsplit(url)
    if not _is_own_host(parts.hostname) or parts.path.rstrip("/") != "/l":
        return url
    return next(iter(parse_qs(parts.query).get("uddg", ())), "")


def _is_ad(url: str) -> bool:
    parts = urlsplit(url)
    return _is_own_host(parts.hostname) and (
        parts.path == "/y.js" or "ad_domain" in parse_qs(parts.query)
    )


def _is_own_host(host: str | None) -> bool:
    return host is not None and (host == "duckduckgo.com" or host.endswith(".duckduckgo.com"))
