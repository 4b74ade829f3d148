"""Claims due deliveries many at a time, and keeps them out of each other's way.

An endpoint that hangs holds a few slots, a tenant whose endpoints all hang some more; the others
never wait for them. Without Redis and without SAQ: the ledger's rows are the queue.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from typing import Final

from app.domain.deliveries import requests
from app.kit import logs
from app.services import Services
from db import ledger
from db.ledger import Capacity, WorkRow
from db.session import ALL_TENANTS, Tx
from workers.runner import PUT_BACK_SECONDS, FollowUp, Runner

log = logs.get("courier")

MAX_DELIVERIES: Final = 500
MAX_PER_TENANT: Final = 120
MAX_PER_ENDPOINT: Final = 10
_BATCH = 200
_SCAN_SECONDS = 1.0
_SOON_SECONDS = 0.02
_NEXT_LANES_SECONDS = 0.1


class Courier:
    def __init__(self, services: Services, runner: Runner) -> None:
        self._services = services
        self._runner = runner
        self._tasks: set[asyncio.Task[None]] = set()
        self._lanes: Counter[str] = Counter()
        self._tenants: Counter[str] = Counter()
        self._wakeup = asyncio.Event()
        self._scan_at = 0.0
        # When the work that was put back is due again.
        self._put_back_at = 0.0
        self._cursor = ""
        self._held_back = False
        self._stopping = False

    def reserve(self, tenant_id: str, lanes: list[str]) -> list[str]:
        """Reserves slots in those lanes that there is capacity for, until they are released. The
        work of the others is claimed by a scan.
        """
        capacity, free = self._capacity(), MAX_DELIVERIES - len(self._tasks)
        free = max(0, min(free, capacity.per_tenant - self._tenants[tenant_id]))
        # Where work may wait already, new work goes behind it.
        limit = 1 if self._held_back else capacity.per_lane
        fitting = [lane for lane in lanes if self._lanes[lane] < limit][:free]
        self._held_back |= len(fitting) < len(lanes)
        for lane in fitting:
            self._count(lane, tenant_id, 1)
        return fitting

    def release(self, tenant_id: str, lanes: Collection[str]) -> None:
        for lane in lanes:
            self._count(lane, tenant_id, -1)

    def _count(self, lane: str, tenant_id: str, by: int) -> None:
        for counts, key in ((self._lanes, lane), (self._tenants, tenant_id)):
            counts[key] += by
            if not counts[key]:
                del counts[key]

    def run_follow_up(self, follow_up: FollowUp) -> None:
        for leased in follow_up.leased:
            self._start(leased.work, leased.payload)
        if follow_up.waiting:
            self._scan_soon()

    def wake(self) -> None:
        """Scan now, not within the second."""
        self._scan_at = 0.0
        self._wakeup.set()

    def stop(self) -> None:
        """Ends the loop after the current scan; what it claimed is started or put back."""
        self._stopping = True
        self._wakeup.set()

    async def _put_back(self, row: WorkRow) -> None:
        await self._runner.put_back(row)
        self._put_back_at = time.monotonic() + PUT_BACK_SECONDS
        self._scan_soon(PUT_BACK_SECONDS)

    def _scan_soon(self, seconds: float = _SOON_SECONDS) -> None:
        """Not at once: other deliveries that end just now free their slots, too."""
        self._scan_at = min(self._scan_at, time.monotonic() + seconds)
        self._wakeup.set()

    async def run(self) -> None:
        while not self._stopping:
            self._wakeup.clear()
            try:
                if time.monotonic() >= self._scan_at:
                    await self.scan()
            except Exception as error:  # noqa: BLE001  # the database may be unavailable for a while
                log.warning("scan for due deliveries failed", reason=str(error)[:200])
                self._scan_at = time.monotonic() + _SCAN_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._scan_at - time.monotonic())):
                    await self._wakeup.wait()

    async def run_claimed(self, row: WorkRow) -> None:
        """Runs one that was claimed by its id, because a request waits for it."""
        capacity = self._capacity()
        lane, tenant = self._lanes[row.lane or ""], self._tenants[row.tenant_id or ""]
        if (
            lane < capacity.per_lane
            and tenant < capacity.per_tenant
            and len(self._tasks) < MAX_DELIVERIES
        ):
            self._start(row, None)
        else:
            await self._put_back(row)

    async def scan(self) -> int:
        """Claims what is due in the next lanes: retries, and what other workers left behind.
        Returns how many.
        """
        limit, seconds = (
            min(MAX_DELIVERIES - len(self._tasks), _BATCH),
            self._services.settings.lease_seconds,
        )
        self._scan_at = time.monotonic() + _SCAN_SECONDS
        if self._put_back_at > time.monotonic():
            self._scan_at = min(self._scan_at, self._put_back_at)
        rows: list[WorkRow] = []
        if limit > 0:
            async with self._services.db.tx(ALL_TENANTS, autocommit=True) as tx:
                raw, capacity = await tx.raw(), self._capacity()
                rows, self._cursor = await ledger.claim_lanes(
                    raw, limit, capacity, seconds, self._cursor
                )
                await self._begin(tx, rows)
        self._held_back = limit <= 0 or self._is_full()
        if rows and len(rows) == limit:
            self._scan_at = 0.0
        elif self._cursor:
            self._scan_at = time.monotonic() + _NEXT_LANES_SECONDS
        return len(rows)

    def _capacity(self) -> Capacity:
        """A tenant may have half of the free slots, so that some are left for the next one."""
        share = min(MAX_PER_TENANT, (MAX_DELIVERIES - len(self._tasks)) // 2)
        share = max(MAX_PER_ENDPOINT, share)
        return Capacity(self._lanes, self._tenants, MAX_PER_ENDPOINT, share)

    def _is_full(self) -> bool:
        """A lane or a tenant is at its limit, and perhaps more of its work is due."""
        capacity = self._capacity()
        return any(count >= capacity.per_lane for count in self._lanes.values()) or any(
            count >= capacity.per_tenant for count in self._tenants.values()
        )

    async def _begin(self, tx: Tx, rows: list[WorkRow]) -> None:
        loaded = await requests.load(tx, [row.ref_id or "" for row in rows]) if rows else {}
        for row in rows:
            if self._lanes[row.lane or ""] < MAX_PER_ENDPOINT:
                self._start(row, loaded.get(row.ref_id or ""))
            else:
                # Another delivery took the slot while these were claimed.
                await self._put_back(row)

    def _start(self, row: WorkRow, request: object) -> None:
        lane, tenant = row.lane or "", row.tenant_id or ""
        self._count(lane, tenant, 1)
        if self._runner.accepting:
            task = self._runner.start(row, request)
        else:
            task = asyncio.create_task(self._runner.put_back(row))
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, lane, tenant))

    def _ended(self, lane: str, tenant: str, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._count(lane, tenant, -1)
        if self._held_back:
            self._scan_soon()
