"""A cache in memory with a bound on its entries and on their size."""

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class SizedCache(Generic[K, V]):
    """Keeps the entries that were used last."""

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def add(self, key: K, value: V, size: int) -> None:
        """Replaces an entry with this key, which another task may have added meanwhile."""
        _, earlier_size = self._entries.pop(key, (None, 0))
        self._entries[key] = (value, size)
        self._bytes += size - earlier_size
        while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
            self._bytes -= self._entries.popitem(last=False)[1][1]
