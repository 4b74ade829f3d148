"""No tenant has more than a few requests wait for somebody outside at the same time."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.kit.errors import RateLimited


class ConcurrencyLimit:
    """One per process. What hangs on a peer of one tenant leaves the connections to the others."""

    def __init__(self, most: int = 10) -> None:
        self._most = most
        self._inside: Counter[str] = Counter()

    @asynccontextmanager
    async def hold(self, tenant_id: str) -> AsyncIterator[None]:
        if self._inside[tenant_id] >= self._most:
            raise RateLimited(
                f"At most {self._most} of these run at a time; try again shortly",
                headers={"Retry-After": "5"},
            )
        self._inside[tenant_id] += 1
        try:
            yield
        finally:
            self._inside[tenant_id] -= 1
            if not self._inside[tenant_id]:
                del self._inside[tenant_id]
