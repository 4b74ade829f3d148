"""The entries of a feed, RSS or Atom: the pages that they lead to, or what the feed has of them."""

import html
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal
from urllib.parse import quote, urldefrag, urljoin, urlsplit

import msgspec

from app.domain.agents.sources import xml_lists
from app.domain.agents.sources.content import Content
from app.domain.agents.sources.failures import DocumentSkipped
from app.domain.agents.sources.xml_lists import FeedEntry

from .protocol import Address, Item, SourceKind, SourceType, path_of

_MAX_ENTRIES = 1000


class FeedConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: Address
    content: Literal["pages", "entries"] = "pages"


class FeedSource(SourceKind):
    """An entry that is no longer in the feed is older, not gone."""

    name: ClassVar[SourceType] = "feed"
    config_type = FeedConfig
    lists_all: ClassVar[bool] = False

    async def list_items(self) -> Sequence[Item]:
        page = await self._turn.web.get(self._turn.config.url, max_bytes=xml_lists.MAX_BYTES)
        if page is None:
            raise DocumentSkipped("answered with status 304")
        entries = await xml_lists.read_feed(page.body)
        return list(self._select(entries[:_MAX_ENTRIES]))

    def _select(self, entries: Sequence[FeedEntry]) -> Iterator[Item]:
        base, has_contents = self._turn.config.url, self._turn.config.content == "entries"
        for entry in entries:
            url = _find_address(entry, base)
            if has_contents and entry.html:
                url = url or f"{base}#{quote(entry.id or entry.title, safe='')}"
                yield Item(url, path_of(url), entry.title, content=_build_page(entry))
            elif url is not None:
                yield Item(urldefrag(url).url, path_of(url), entry.title)


def _find_address(entry: FeedEntry, base: str) -> str | None:
    """Returns the address of the page; None when there is none."""
    try:
        url = urljoin(base, entry.address) if entry.address else entry.id
        parts = urlsplit(url)
    except ValueError:
        return None
    is_page = parts.scheme in {"http", "https"} and parts.hostname and url.isprintable()
    return url if is_page else None


def _build_page(entry: FeedEntry) -> Content:
    title = html.escape(entry.title)
    page = f'<!doctype html><meta charset="utf-8"><title>{title}</title><body>{entry.html}'
    return Content(page.encode("utf-8", "replace"), "html", entry.title)
