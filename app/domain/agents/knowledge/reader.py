"""On whose behalf documents are searched."""

from collections.abc import Iterable

import msgspec


class Reader(msgspec.Struct, frozen=True):
    """Somebody inside, who finds all documents that are valid, or a visitor, who finds the public
    ones that have no groups or one of theirs. `groups` is None for somebody inside.
    """

    groups: tuple[str, ...] | None = None

    @classmethod
    def inside(cls) -> "Reader":
        return cls()

    @classmethod
    def visitor(cls, groups: Iterable[str] = ()) -> "Reader":
        return cls(tuple(groups))

    @property
    def is_visitor(self) -> bool:
        return self.groups is not None
