"""The metrics as Prometheus reads them."""

import asyncio
from collections.abc import Awaitable, Callable

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from app.kit import logs
from app.observe.cached_report import CachedReport

CONTENT_TYPE = CONTENT_TYPE_LATEST
log = logs.get("metrics")

_RENDER_SECONDS = 1.0
_COLLECT_SECONDS = 2.0


class MetricsPage:
    """Renders at most once a second, in a thread: it takes some milliseconds, and anybody who
    reaches the address may ask.

    `directory` has the values of several processes. `collect` returns what is not counted in this
    process.
    """

    def __init__(
        self, directory: str = "", collect: Callable[[], Awaitable[Collector]] | None = None
    ) -> None:
        self._directory = directory
        self._collect = collect
        self._text = CachedReport(_RENDER_SECONDS, self._build)

    async def read(self) -> bytes:
        return await self._text.get()

    async def _build(self) -> bytes:
        registry = CollectorRegistry()
        if self._collect is not None:
            try:
                async with asyncio.timeout(_COLLECT_SECONDS):
                    registry.register(await self._collect())
            except Exception as error:  # noqa: BLE001  # the other metrics are still served
                log.warning("cannot count the open work", reason=str(error)[:200])
        return await asyncio.to_thread(self._render, registry)

    def _render(self, registry: CollectorRegistry) -> bytes:
        if self._directory:
            MultiProcessCollector(registry, path=self._directory)  # type: ignore[no-untyped-call]
            return generate_latest(registry)
        return generate_latest(REGISTRY) + generate_latest(registry)
