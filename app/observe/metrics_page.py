"""The metrics as Prometheus reads them."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from prometheus_client import REGISTRY
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from app.kit import logs
from app.observe.cached_report import CachedReport
from app.observe.metrics_formats import OPENMETRICS, PROMETHEUS, Families, Format, choose_format

log = logs.get("metrics")

_RENDER_SECONDS = 1.0
_COLLECT_SECONDS = 2.0


class MetricsPage:
    """Renders each format at most once a second, in a thread: it takes some milliseconds, and
    anybody who reaches the address may ask.

    `directory` has the values of several processes. `collect` returns what is not counted in this
    process.
    """

    def __init__(
        self, directory: str = "", collect: Callable[[], Awaitable[Collector]] | None = None
    ) -> None:
        self._directory = directory
        self._collect = collect
        self._texts = {
            text_format: CachedReport(_RENDER_SECONDS, partial(self._build, text_format))
            for text_format in (PROMETHEUS, OPENMETRICS)
        }

    async def read(self, accept: str = "") -> tuple[bytes, str]:
        """Returns the metrics in the format that a client accepts, and their content type."""
        text_format = choose_format(accept)
        return await self._texts[text_format].get(), text_format.content_type

    async def _build(self, text_format: Format) -> bytes:
        collectors = []
        if self._collect is not None:
            try:
                async with asyncio.timeout(_COLLECT_SECONDS):
                    collectors.append(await self._collect())
            except Exception as error:  # noqa: BLE001  # the other metrics are still served
                log.warning("cannot count the open work", reason=str(error)[:200])
        return await asyncio.to_thread(self._render, text_format, collectors)

    def _render(self, text_format: Format, collectors: list[Collector]) -> bytes:
        counted: Collector = REGISTRY
        if self._directory:
            counted = MultiProcessCollector(None, path=self._directory)  # type: ignore[no-untyped-call]
        return text_format.render(Families([counted, *collectors]))
