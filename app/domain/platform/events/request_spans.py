"""Stores how long requests lasted that emitted events, for the traces of these events."""

import asyncio
from datetime import datetime
from typing import Final

from app.jobs import background
from app.kit import logs
from app.kit.ids import new_id
from app.kit.trace import Trace
from db.session import ALL_TENANTS, Database

from . import queries
from .queries import FinishedRequest

log = logs.get("events")

# A busy process writes all spans of this time with one statement.
_DELAY_SECONDS: Final = 0.25
# While Postgres is slow, more spans are not stored: a trace then has what its events show.
_MAX_PENDING: Final = 10_000


class RequestSpans:
    """One statement writes at a time, so that a slow Postgres costs one connection."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._pending: list[FinishedRequest] = []
        self._in_flight: list[FinishedRequest] = []
        self._is_writing = False

    def add(
        self, current: Trace, name: str, status_code: int, started_at: datetime, seconds: float
    ) -> None:
        """Does not wait for the database."""
        if len(self._pending) + len(self._in_flight) >= _MAX_PENDING:
            return
        self._pending += [
            FinishedRequest(
                tenant_id,
                new_id("rqs"),
                current.correlation_id,
                current.request_id or "",
                started_at,
                round(seconds * 1000, 3),
                name,
                status_code,
            )
            for tenant_id in current.event_tenants
        ]
        if not self._is_writing:
            self._is_writing = True
            background.spawn(self._write())

    async def _write(self) -> None:
        try:
            while self._pending:
                await asyncio.sleep(_DELAY_SECONDS)
                self._in_flight, self._pending = self._pending, []
                await self._store(self._in_flight)
                self._in_flight = []
        finally:
            self._in_flight, self._is_writing = [], False

    async def _store(self, requests: list[FinishedRequest]) -> None:
        try:
            async with self._db.tx(ALL_TENANTS, autocommit=True) as tx:
                await queries.add_requests(tx, requests)
        except Exception as error:  # noqa: BLE001  # the database may be unavailable for a while
            log.warning(
                "spans of requests were not stored", count=len(requests), reason=str(error)[:200]
            )
