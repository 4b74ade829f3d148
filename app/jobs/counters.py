"""Counts things in memory, and stores the counts every few seconds."""

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from typing import Generic, TypeVar

from app.jobs import background
from app.kit import logs

log = logs.get("counters")

K = TypeVar("K")


class BufferedCounter(ABC, Generic[K]):
    """The counts of one process, by key. A process that is killed loses the counts of its last
    seconds; one that stops stores them first. Counts that could not be stored are stored with the
    next ones. Where the connection breaks during the commit, those of that one statement may count
    twice.
    """

    def __init__(self, every_seconds: float) -> None:
        self._every_seconds = every_seconds
        self._counts: Counter[K] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    @abstractmethod
    async def save(self, counts: Counter[K]) -> None:
        """Stores counts with one statement."""

    def add(self, key: K) -> None:
        """Does not wait for the database."""
        self._counts[key] += 1
        if self._timer is None and not self._is_closed:
            self._start_timer()

    async def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        await self.store()

    async def store(self) -> None:
        """Stores all counts."""
        counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            await self.save(counts)
        except Exception as error:  # noqa: BLE001  # the database may be unavailable for a while
            self._counts.update(counts)
            log.warning(
                "counts were not stored",
                counter=type(self).__name__,
                count=counts.total(),
                reason=str(error)[:200],
            )

    def _start_timer(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._every_seconds, lambda: background.spawn(self._run()))

    async def _run(self) -> None:
        await self.store()
        self._timer = None
        if self._counts and not self._is_closed:
            self._start_timer()
