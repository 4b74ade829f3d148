"""Bounds what the bodies of all requests under way take together, in memory and on disk.

The limit of one body alone does not: many clients may send large ones slowly at the same time.
"""

from collections import Counter
from typing import Any, Final

from litestar.types import Receive

from app.kit.errors import RateLimited, Unavailable

_MEGABYTE: Final = 1024 * 1024
# An address has this part of the whole.
_ADDRESS_PART: Final = 8
# The disk may take this many times as much as memory.
_DISK_FACTOR: Final = 8
# What a body takes in memory while its files go to disk, or to the file store.
_SPOOLED_BYTES: Final = _MEGABYTE
_STREAMED_BYTES: Final = 12 * _MEGABYTE
# The beginning of a body is not counted, so that short requests are answered while large ones fill
# the budget. The number of connections bounds it.
_UNCOUNTED_BYTES: Final = 16 * 1024
_RETRY_SECONDS: Final = 5


class _Meter:
    """Counts the bytes of all addresses and of each one."""

    def __init__(self, total: int, per_address: int) -> None:
        self._max_total = total
        self._max_of_address = per_address
        self._total = 0
        self._by_address: Counter[str] = Counter()

    def add(self, address: str | None, count: int) -> None:
        """Raises RateLimited or Unavailable when there is no room; they are counted all the same,
        until `remove`. Without an address only the total counts.
        """
        self._total += count
        if address is not None:
            self._by_address[address] += count
            if self._by_address[address] > self._max_of_address:
                raise RateLimited(
                    "Your address sends too much at the same time. "
                    f"Try again in {_RETRY_SECONDS} seconds",
                    headers={"Retry-After": str(_RETRY_SECONDS)},
                )
        if self._total > self._max_total:
            raise Unavailable(
                "Too many large requests arrive at the same time. "
                f"Try again in {_RETRY_SECONDS} seconds",
                _RETRY_SECONDS,
            )

    def remove(self, address: str | None, count: int) -> None:
        self._total -= count
        if address is not None:
            self._by_address[address] -= count
            if self._by_address[address] <= 0:
                del self._by_address[address]


class BodyBudget:
    """One per web process."""

    def __init__(self, memory_mb: int, largest_upload_mb: int) -> None:
        memory, largest = memory_mb * _MEGABYTE, largest_upload_mb * _MEGABYTE
        self.memory = _Meter(memory, memory // _ADDRESS_PART)
        disk = memory * _DISK_FACTOR
        # One upload of the largest size always fits.
        self.disk = _Meter(max(disk, largest), max(disk // _ADDRESS_PART, largest))

    def start(self, address: str) -> "BodyUse":
        return BodyUse(self, address)


class BodyUse:
    """What the body of one request takes. It is in memory, unless the route says otherwise before
    it is read.
    """

    __slots__ = (
        "_address",
        "_budget",
        "_has_file",
        "_max_memory",
        "_memory",
        "_on_disk",
        "_uncounted",
    )

    def __init__(self, budget: BodyBudget, address: str) -> None:
        self._budget = budget
        self._address: str | None = address
        self._max_memory: int | None = None
        self._has_file = False
        self._memory = 0
        self._on_disk = 0
        self._uncounted = _UNCOUNTED_BYTES

    def spool(self) -> None:
        """Files go to disk until the request ends."""
        self._max_memory, self._has_file = _SPOOLED_BYTES, True

    def stream(self) -> None:
        """The file goes to the file store as it arrives, where it is limited by its owner."""
        self._max_memory, self._address = _STREAMED_BYTES, None

    def count(self, receive: Receive) -> Receive:
        async def receive_counted() -> Any:
            message: Any = await receive()
            body = message.get("body")
            if body:
                self.add(len(body))
            return message

        return receive_counted

    def add(self, count: int) -> None:
        """Raises RateLimited or Unavailable."""
        in_memory = max(0, count - self._uncounted)
        self._uncounted -= count - in_memory
        if self._max_memory is not None:
            in_memory = min(in_memory, self._max_memory - self._memory)
        if in_memory:
            self._memory += in_memory
            self._budget.memory.add(self._address, in_memory)
        if self._has_file:
            self._on_disk += count
            self._budget.disk.add(self._address, count)

    def end(self) -> None:
        if self._memory:
            self._budget.memory.remove(self._address, self._memory)
        if self._on_disk:
            self._budget.disk.remove(self._address, self._on_disk)
        self._memory = self._on_disk = 0
