"""The pages that a site lists in its sitemap, or in the sitemaps of an index."""

from collections.abc import Sequence
from typing import ClassVar
from urllib.parse import urldefrag, urljoin, urlsplit

import msgspec

from app.domain.agents.sources import xml_lists
from app.domain.agents.sources.failures import DocumentGone, DocumentSkipped
from app.domain.agents.sources.web import shorten
from app.domain.agents.sources.xml_lists import Sitemap
from app.kit.pacing import Pace

from .protocol import Address, Item, SourceKind, SourceType, path_of

_MAX_SITEMAPS = 50
_MAX_ITEMS = 50_000


class SitemapConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: Address


class SitemapSource(SourceKind):
    name: ClassVar[SourceType] = "sitemap"
    config_type = SitemapConfig

    async def list_items(self) -> Sequence[Item]:
        """A sitemap speaks for its own host only, so that nobody makes us ask another one."""
        url = self._turn.config.url
        sitemap = await self._read_sitemap(url)
        if not sitemap.is_index:
            return await self._select_own(sitemap.addresses, url)
        items: list[Item] = []
        problems: list[Exception] = []
        for part in (await self._select_own(sitemap.addresses, url))[:_MAX_SITEMAPS]:
            try:
                inner = await self._read_sitemap(part.url)
            except DocumentGone:
                continue
            except DocumentSkipped as problem:
                problems.append(DocumentSkipped(f"lists {shorten(part.url)}, which {problem}"))
                continue
            items += [] if inner.is_index else await self._select(inner.addresses, url)
            if len(items) >= _MAX_ITEMS:
                break
        if problems:
            # Pages that are not listed would be taken for removed ones.
            raise problems[0]
        return items[:_MAX_ITEMS]

    async def _read_sitemap(self, url: str) -> Sitemap:
        page = await self._turn.web.get(url, max_bytes=xml_lists.MAX_BYTES)
        if page is None:
            raise DocumentSkipped("answered with status 304")
        return await xml_lists.read_sitemap(page.body)

    async def _select_own(self, addresses: list[str], base: str) -> list[Item]:
        """Like `_select`; fails where the whole list is about other hosts, as after a move."""
        items = await self._select(addresses, base)
        if addresses and not items:
            raise DocumentSkipped(
                f"lists nothing of its own host, but {shorten(addresses[0])}, which is left out"
            )
        return items

    async def _select(self, addresses: list[str], base: str) -> list[Item]:
        host = _host_of(base)
        pace = Pace()
        items: list[Item] = []
        for address in addresses:
            await pace.rest()
            try:
                url = urldefrag(urljoin(base, address)).url
                is_own = _host_of(url) == host
            except ValueError:
                continue
            if is_own and url.isprintable():
                items.append(Item(url, path_of(url)))
        return items


def _host_of(url: str) -> str:
    parts = urlsplit(url)
    _ = parts.port
    return (parts.hostname or "").removeprefix("www.")
