"""Limits how many requests of one tenant do the same thing at the same time."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.kit.errors import RateLimited


class ConcurrencyLimit:
    """One per process. Slow calls of one tenant do not use up the connections of others."""

    def __init__(self, max_requests: int = 10, name: str = "of these") -> None:
        self._max_requests = max_requests
        self._name = name
        self._running: Counter[str] = Counter()

    def build_refusal(self, max_requests: int) -> RateLimited:
        return RateLimited(
            f"At most {max_requests} {self._name} run at a time; try again shortly",
            headers={"Retry-After": "5"},
        )

    @asynccontextmanager
    async def hold(self, tenant_id: str) -> AsyncIterator[None]:
        if self._running[tenant_id] >= self._max_requests:
            raise self.build_refusal(self._max_requests)
        self._running[tenant_id] += 1
        try:
            yield
        finally:
            self._running[tenant_id] -= 1
            if not self._running[tenant_id]:
                del self._running[tenant_id]
