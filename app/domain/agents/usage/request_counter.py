"""Counts the requests of tenants in memory, and stores the counts every few seconds."""

from collections import Counter
from datetime import UTC, datetime
from typing import Final

from app.jobs.counters import BufferedCounter
from app.kit import clock
from db.session import ALL_TENANTS, Database

from . import count_queries

_HOUR: Final = 3600


class RequestCounter(BufferedCounter[tuple[str, str, int]]):
    """By tenant, caller and number of the hour since 1970."""

    def __init__(self, db: Database, every_seconds: float = 3.0) -> None:
        super().__init__(every_seconds)
        self._db = db

    def add_request(self, tenant_id: str, caller_id: str = "") -> None:
        """Does not wait for the database. `caller_id` is a user or a key, "" for a visitor of a
        form.
        """
        self.add((tenant_id, caller_id, int(clock.epoch()) // _HOUR))

    async def save(self, counts: Counter[tuple[str, str, int]]) -> None:
        rows = {
            (tenant_id, caller_id, datetime.fromtimestamp(hour * _HOUR, UTC)): amount
            for (tenant_id, caller_id, hour), amount in counts.items()
        }
        async with self._db.tx(ALL_TENANTS, autocommit=True) as tx:
            await count_queries.add_requests(tx, rows)
