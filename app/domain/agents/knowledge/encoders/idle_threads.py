"""Threads that encode when nothing else wants the processors."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

_LOWEST_PRIORITY = 19
# Where documents are read without an end, a part is encoded from time to time.
_MAX_PAUSE_SECONDS = 5.0


class IdleThreads:
    """One thread, and another for each processor that has been idle for a minute."""

    def __init__(self) -> None:
        self._processors = os.cpu_count() or 1
        self._executor = ThreadPoolExecutor(
            self._processors, thread_name_prefix="encoder", initializer=_lower_priority
        )
        self._running = 0
        self._urgent = 0
        self._may_run = threading.Event()
        self._may_run.set()

    def count_free(self) -> int:
        """At least 1. The threads of this pool do not count as work of others."""
        load = os.getloadavg()[0] - self._running
        return max(1, int(self._processors - max(0.0, load)))

    @contextmanager
    def give_way(self) -> Iterator[None]:
        """Meanwhile no part is started: the priority alone does not keep a part from slowing down
        what runs in the same process.
        """
        self._urgent += 1
        self._may_run.clear()
        try:
            yield
        finally:
            self._urgent -= 1
            if not self._urgent:
                self._may_run.set()

    async def map(self, function: Callable[[Any], T], parts: list[Any]) -> list[T]:
        free = asyncio.Semaphore(self.count_free())

        async def run(part: Any) -> T:
            async with free:
                return await self._start(function, part)

        return await asyncio.gather(*map(run, parts))

    async def _start(self, function: Callable[[Any], T], part: Any) -> T:
        loop = asyncio.get_running_loop()
        self._running += 1
        try:
            return await loop.run_in_executor(self._executor, self._run, function, part)
        finally:
            self._running -= 1

    def _run(self, function: Callable[[Any], T], part: Any) -> T:
        self._may_run.wait(_MAX_PAUSE_SECONDS)
        return function(part)

    async def close(self) -> None:
        self._may_run.set()
        await asyncio.to_thread(self._executor.shutdown, cancel_futures=True)


def _lower_priority() -> None:
    """Elsewhere than on Linux the priority is that of the whole process, which also serves."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST_PRIORITY)
