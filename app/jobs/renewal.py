"""Renews a lease while a task runs. Most tasks end before the first renewal."""

import asyncio
from collections.abc import Awaitable, Callable

from app.jobs import background
from app.kit import logs

log = logs.get("renewal")


class Renewal:
    """Calls `renew` at the end of every interval until it is stopped."""

    def __init__(self, seconds: float, renew: Callable[[], Awaitable[object]]) -> None:
        self._seconds = seconds
        self._renew = renew
        self._task: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(seconds, self._start)

    def _start(self) -> None:
        self._task = background.start(self._renew_forever())

    async def _renew_forever(self) -> None:
        while True:
            try:
                await self._renew()
            except Exception as error:  # noqa: BLE001  # an unavailable database comes back
                log.warning("not renewed", reason=str(error)[:200])
            await asyncio.sleep(self._seconds)

    def stop(self) -> None:
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
