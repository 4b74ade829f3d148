"""All kinds of sources. A new one is a file beside this one and a line here."""

from typing import Final

from .page import PageSource
from .protocol import SourceKind

_ALL: tuple[type[SourceKind], ...] = (PageSource,)
KINDS: Final[dict[str, type[SourceKind]]] = {kind.name: kind for kind in _ALL}
