"""Which documents a search may find, and how LanceDB keeps to it.

A condition costs LanceDB a hundredth of a millisecond for each id, in each part of a search. So a
long list of ids is no condition: more rows are read, and those of other documents are dropped. The
condition is used after all where too few rows are left.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from .lance import of_documents

# The longest list that is always a condition.
_MAX_LISTED: Final = 50
# How many times the rows are read that are wanted, at least and at most, and how many more.
_SURPLUS = 1.5
_MAX_FACTOR = 10
_MORE_ROWS = 10


class Restriction(msgspec.Struct, frozen=True):
    """A search finds only these documents, or all but these. `share` is that of the documents that
    it finds.
    """

    document_ids: frozenset[str] = frozenset()
    is_inclusive: bool = False
    share: float = 1.0

    @classmethod
    def all_but(cls, document_ids: Iterable[str], share: float = 1.0) -> "Restriction":
        return cls(frozenset(document_ids), is_inclusive=False, share=share)

    @classmethod
    def only(cls, document_ids: Iterable[str], share: float) -> "Restriction":
        return cls(frozenset(document_ids), is_inclusive=True, share=share)

    def allows(self, document_id: str) -> bool:
        return (document_id in self.document_ids) is self.is_inclusive

    @property
    def allows_nothing(self) -> bool:
        return self.is_inclusive and not self.document_ids

    @property
    def condition(self) -> str | None:
        """The SQL that a row must fulfil."""
        if self.is_inclusive:
            return of_documents(self.document_ids)
        return f"NOT {of_documents(self.document_ids)}" if self.document_ids else None

    def count_candidates(self, limit: int) -> int | None:
        """Returns how many rows to read so that about `limit` are left; None to use the condition
        instead.
        """
        factor = _SURPLUS / max(self.share, 1e-9)
        if len(self.document_ids) <= _MAX_LISTED or factor > _MAX_FACTOR:
            return None
        return math.ceil(limit * factor) + _MORE_ROWS


EVERYTHING: Final = Restriction()


async def read_rows(
    restriction: Restriction, limit: int, start_query: Callable[[float], Any]
) -> list[dict[str, Any]]:
    """Returns the best rows of a query that the restriction allows. They need a document_id. The
    query is started with how many times more rows are read than are wanted.
    """
    wanted = restriction.count_candidates(limit)
    if wanted is not None:
        rows = await start_query(wanted / limit).limit(wanted).to_list()
        allowed = [row for row in rows if restriction.allows(row["document_id"])]
        if len(allowed) >= limit or len(rows) < wanted:
            return allowed[:limit]
    query, condition = start_query(1.0).limit(limit), restriction.condition
    found: list[dict[str, Any]] = await (query.where(condition) if condition else query).to_list()
    return found
