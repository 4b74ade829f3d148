"""Threads that encode when nothing else wants the processors."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

_LOWEST_PRIORITY = 19


class IdleThreads:
    """One thread, and another for each processor that has been idle for a minute."""

    def __init__(self) -> None:
        self._processors = os.cpu_count() or 1
        self._executor = ThreadPoolExecutor(
            self._processors, thread_name_prefix="encoder", initializer=_lower_priority
        )
        self._running = 0

    def count_free(self) -> int:
        """At least 1. The threads of this pool do not count as work of others."""
        load = os.getloadavg()[0] - self._running
        return max(1, int(self._processors - max(0.0, load)))

    async def map(self, function: Callable[[Any], T], parts: list[Any]) -> list[T]:
        loop = asyncio.get_running_loop()
        self._running += len(parts)
        try:
            calls = (loop.run_in_executor(self._executor, function, part) for part in parts)
            return await asyncio.gather(*calls)
        finally:
            self._running -= len(parts)

    async def close(self) -> None:
        await asyncio.to_thread(self._executor.shutdown, cancel_futures=True)


def _lower_priority() -> None:
    """Elsewhere than on Linux the priority is that of the whole process, which also serves."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST_PRIORITY)
