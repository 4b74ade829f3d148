"""All kinds of sources. A new one is a file beside this one and a line here."""

from typing import Final

from .feed import FeedSource
from .git_archive import GitArchiveSource
from .page import PageSource
from .protocol import SourceKind
from .s3 import S3Source
from .sitemap import SitemapSource

_ALL: tuple[type[SourceKind], ...] = (
    PageSource,
    SitemapSource,
    FeedSource,
    S3Source,
    GitArchiveSource,
)
KINDS: Final[dict[str, type[SourceKind]]] = {kind.name: kind for kind in _ALL}
