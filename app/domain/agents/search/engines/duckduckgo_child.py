"""Script that reads a page of results of DuckDuckGo; `duckduckgo.py` runs it with limits.

It imports nothing of Parley. It reads the page from standard input. It writes one line, `ok`, or
`!` when it is not a page of results, and then the results as JSON: a list of [title, URL, snippet].
"""

import html
import json
import sys
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

from lxml import etree

_ORIGIN = "https://duckduckgo.com/"
# A page has 10 to 30 results.
_MAX_RESULTS = 100

# The title and the snippet are HTML.
Result = tuple[str, str, str]


def _with_class(name: str) -> str:
    return f"contains(concat(' ', normalize-space(@class), ' '), ' {name} ')"


_RESULTS = f"//div[{_with_class('result')}]"
_LINK = f".//a[{_with_class('result__a')}]"
_SNIPPET = f".//*[{_with_class('result__snippet')}]"
_NO_RESULTS = "//*[contains(@class, 'no-result')]"


class Refused(Exception):
    pass


def parse_page(page: bytes) -> list[Result]:
    """Returns the results without ads. Raises Refused when it is not a page of results."""
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(page, parser)
    except etree.LxmlError as error:
        raise Refused from error
    if root is None:
        raise Refused
    results = root.xpath(_RESULTS)
    if not results and not root.xpath(_NO_RESULTS):
        raise Refused
    parsed = [_parse_result(result) for result in results[:_MAX_RESULTS]]
    return [result for result in parsed if result is not None]


def _parse_result(result: Any) -> Result | None:
    links = result.xpath(_LINK)
    url = resolve_link(links[0].get("href", "")) if links else None
    if url is None:
        return None
    snippets = result.xpath(_SNIPPET)
    return _text(links[0]), url, _text(snippets[0]) if snippets else ""


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


def main() -> None:
    try:
        output = "ok\n" + json.dumps(parse_page(sys.stdin.buffer.read()))
    except Refused:
        output = "!\n"
    sys.stdout.write(output)
