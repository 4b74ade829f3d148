"""Reports that cost much and that anybody may ask for."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class CachedReport(Generic[T]):
    """Builds a report at most once in `seconds`; all who ask meanwhile receive the same one."""

    def __init__(self, seconds: float, build: Callable[[], Awaitable[T]]) -> None:
        self._seconds = seconds
        self._build = build
        self._report: T | None = None
        self._built_at = 0.0
        self._lock = asyncio.Lock()

    async def get(self) -> T:
        async with self._lock:
            if self._report is None or time.monotonic() - self._built_at >= self._seconds:
                self._report = await self._build()
                self._built_at = time.monotonic()
            return self._report
