"""What a kind of source is: its settings, its list of documents, and how it reads one of them.

Each kind is one file; `registry.py` lists them. An instance serves one turn of a sync.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from app.domain.agents.sources import content
from app.domain.agents.sources.content import Content
from app.domain.agents.sources.web import NOTHING_KNOWN, Validators, WebClient
from app.kit.validation import VISIBLE

SourceType = Literal["page", "sitemap", "feed", "s3", "git_archive"]
MAX_URL_CHARS: Final = 2000
Address = Annotated[str, Meta(min_length=1, max_length=MAX_URL_CHARS, pattern=VISIBLE)]


class Item(msgspec.Struct, frozen=True):
    """A document that a source lists. Patterns are compared with `path`. Equal contents have an
    equal `version`, if there is one; some lists have the content itself.
    """

    url: str
    path: str
    title: str = ""
    version: str | None = None
    content: Content | None = None

    @property
    def name_path(self) -> str:
        """Returns what a document without a title is called after."""
        path = self.path.partition("?")[0]
        return path if path.strip("/") else urlsplit(self.url).hostname or ""


class Turn(msgspec.Struct, frozen=True):
    """What a kind needs for one turn of a sync. Its config and secrets are structs of the kind."""

    web: WebClient
    config: Any
    secrets: Any
    max_document_bytes: int


class SourceKind(ABC):
    """`follows_robots` is False for interfaces of programs, which no crawler finds by itself."""

    name: ClassVar[SourceType]
    config_type: ClassVar[type[msgspec.Struct]]
    # Texts that are sealed; None where a kind has none.
    secrets_type: ClassVar[type[msgspec.Struct] | None] = None
    follows_robots: ClassVar[bool] = True
    # False where documents that are no longer listed stay, up to the limit.
    lists_all: ClassVar[bool] = True

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    @staticmethod
    def address(config: Any) -> tuple[str, str]:
        """Returns the name of the setting with the address, and the address."""
        return "url", config.url

    @staticmethod
    def find_problem(config: Any) -> tuple[str, str] | None:
        """Returns the name of an invalid setting and what is wrong with it, beyond the types."""
        del config
        return None

    @abstractmethod
    async def list_items(self) -> Sequence[Item]:
        """Returns all documents. Raises SyncFailed, DocumentSkipped or DocumentGone."""

    async def read(self, item: Item, known: Validators = NOTHING_KNOWN) -> Content | None:
        """Returns None when it is the version that is known. Raises DocumentSkipped, DocumentGone
        or SyncFailed.
        """
        page = await self._turn.web.get(item.url, known, max_bytes=self._turn.max_document_bytes)
        if page is None:
            return None
        kind = content.find_kind(page.content_type, page.url)
        body = await content.as_utf8(page.body, page.content_type)
        return Content(
            body,
            kind,
            item.title or (content.find_title(body) if kind == "html" else ""),
            page.validators.etag,
            page.validators.last_modified,
        )


def path_of(url: str) -> str:
    """Returns the path of a web page, with its query."""
    parts = urlsplit(url)
    return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
