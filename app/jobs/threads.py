"""Threads for computations that would hold up the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from app.jobs.background import run_to_end

T = TypeVar("T")


class TenantThreads:
    """One per process. A tenant has one thread at a time, so that others find a free one."""

    def __init__(self, max_threads: int = 4) -> None:
        self._executor = ThreadPoolExecutor(max_threads, thread_name_prefix="tenant")
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(self, tenant_id: str, function: Callable[..., T], *args: Any, **more: Any) -> T:
        """Returns what the function returns, or raises what it raises. A cancelled caller waits for
        its end: a thread cannot be stopped.
        """
        turn = self._turns.setdefault(tenant_id, asyncio.Lock())
        async with turn:
            call = partial(copy_context().run, partial(function, *args, **more))
            return await run_to_end(self._call(call))

    async def _call(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    async def close(self) -> None:
        await asyncio.to_thread(self._executor.shutdown, cancel_futures=True)
