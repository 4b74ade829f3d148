"""The search engines of a process, by name."""

import asyncio
from typing import Final
from weakref import WeakValueDictionary

from app.net.egress import Egress

from .brave import Brave
from .duckduckgo import DuckDuckGo
from .http import SECONDS
from .protocol import Engine, Hit, SearchFailed, SearchRequest
from .searxng import Searxng, open_egress
from .tavily import Tavily

# Searches of one tenant at a time, so that it does not occupy all connections to an engine.
_MAX_SEARCHES: Final = 5
# A search may wait for others of its tenant.
_TOTAL_SECONDS: Final = 2 * SECONDS


class SearchEngines:
    """One per process; the owner closes it. `searxng` exists only with an address."""

    def __init__(self, egress: Egress, searxng_url: str) -> None:
        self._engines: dict[str, Engine] = {
            "duckduckgo": DuckDuckGo(egress),
            "brave": Brave(egress),
            "tavily": Tavily(egress),
        }
        self._searxng_egress: Egress | None = None
        if searxng_url:
            self._searxng_egress = open_egress(searxng_url)
            self._engines["searxng"] = Searxng(self._searxng_egress, searxng_url)
        self._limits: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def find(self, name: str) -> Engine | None:
        return self._engines.get(name)

    async def search(self, tenant_id: str, engine: Engine, request: SearchRequest) -> list[Hit]:
        """Waits while the tenant has too many searches. Raises SearchFailed."""
        limit = self._limits.setdefault(tenant_id, asyncio.Semaphore(_MAX_SEARCHES))
        try:
            async with asyncio.timeout(_TOTAL_SECONDS), limit:
                return await engine.search(request)
        except TimeoutError as error:
            raise SearchFailed("timeout", "the search engine did not answer in time") from error

    async def close(self) -> None:
        if self._searxng_egress is not None:
            await self._searxng_egress.close()
            await self._searxng_egress.guard.close()
