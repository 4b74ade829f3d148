"""One page of the web, or one file."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from app.domain.agents.sources.content import Content
from app.domain.agents.sources.failures import DocumentGone, SyncFailed
from app.domain.agents.sources.web import NOTHING_KNOWN, Validators

from .protocol import Address, Item, SourceKind, SourceType, path_of


class PageConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: Address


class PageSource(SourceKind):
    name: ClassVar[SourceType] = "page"
    config_type = PageConfig

    async def list_items(self) -> Sequence[Item]:
        url = self._turn.config.url
        return [Item(url, path_of(url))]

    async def read(self, item: Item, known: Validators = NOTHING_KNOWN) -> Content | None:
        """Somebody named this page, so that it does not vanish: it has another address now."""
        try:
            return await super().read(item, known)
        except DocumentGone as error:
            raise SyncFailed(str(error)) from None
