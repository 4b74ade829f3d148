"""Counts the requests of tenants in memory, and stores the counts every few seconds."""

import asyncio
from collections import Counter
from datetime import UTC, datetime
from typing import Final

from app.domain.usage import count_queries
from app.kit import background, clock, logs
from db.session import ALL_TENANTS, Database

log = logs.get("usage")

_HOUR: Final = 3600


class RequestCounter:
    """The counts of one process. A process that is killed loses the counts of its last seconds; one
    that stops stores them first. Counts that Postgres did not accept are stored with the next ones.
    Where the connection breaks during the commit, those of that one statement may count twice.
    """

    def __init__(self, db: Database, every_seconds: float = 3.0) -> None:
        self._db = db
        self._every_seconds = every_seconds
        # By tenant and number of the hour since 1970.
        self._counts: Counter[tuple[str, int]] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def add(self, tenant_id: str) -> None:
        """Does not wait for the database."""
        self._counts[tenant_id, int(clock.epoch()) // _HOUR] += 1
        if self._timer is None and not self._is_closed:
            self._start_timer()

    async def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        await self.store()

    async def store(self) -> None:
        """Stores all counts with one statement."""
        counts, self._counts = self._counts, Counter()
        if not counts:
            return
        rows = {
            (tenant_id, datetime.fromtimestamp(hour * _HOUR, UTC)): amount
            for (tenant_id, hour), amount in counts.items()
        }
        try:
            async with self._db.tx(ALL_TENANTS, autocommit=True) as tx:
                await count_queries.add_requests(tx, rows)
        except Exception as error:  # noqa: BLE001  # the database may be unavailable for a while
            self._counts.update(counts)
            log.warning(
                "counts of requests were not stored",
                requests=counts.total(),
                reason=str(error)[:200],
            )

    def _start_timer(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._every_seconds, lambda: background.spawn(self._run()))

    async def _run(self) -> None:
        await self.store()
        self._timer = None
        if self._counts and not self._is_closed:
            self._start_timer()
