"""What every search engine does: it turns a request into hits."""

from typing import ClassVar, Literal, Protocol

import msgspec

Reason = Literal[
    "timeout", "blocked_address", "unreachable", "refused", "bad_response", "not_configured"
]


class SearchRequest(msgspec.Struct, frozen=True):
    query: str
    max_results: int
    safe_search: bool
    api_key: str = ""


class Hit(msgspec.Struct, frozen=True):
    """A result as the engine sent it: its texts are HTML, its URL may be any text.
    `score` is from 0 to 1, for engines that have one.
    """

    title: str
    url: str
    snippet: str
    score: float | None = None


class SearchFailed(Exception):
    """A search without a result. The message is for people and has no address and no key.
    `status` is that of an answer other than 200.
    """

    def __init__(self, reason: Reason, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.status = status


class Engine(Protocol):
    # The provider of the key that the engine needs.
    key_provider: ClassVar[str | None]

    async def search(self, request: SearchRequest) -> list[Hit]:
        """Returns the best hits first. Raises SearchFailed."""
        ...
