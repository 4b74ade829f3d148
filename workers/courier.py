"""The courier claims due deliveries in batches and limits how many run at a time.

There is a limit per endpoint (its lane) and per tenant, so that endpoints that do not respond never
delay other deliveries. The courier needs neither Redis nor SAQ: the ledger's rows are the queue.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from app.domain.deliveries import requests
from app.kit import logs
from app.kit.work import FollowUp
from app.services import Services
from db import ledger
from db.ledger import Capacity, WorkRow
from db.session import ALL_TENANTS
from workers.runner import PUT_BACK_SECONDS, Runner

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
        # When work that was put back becomes due again.
        self._put_back_at = 0.0
        self._cursor = ""
        # Due work may be waiting for a free slot.
        self._has_waiting_work = False
        self._stopping = False

    def reserve(self, tenant_id: str, lanes: list[str]) -> list[str]:
        """Reserves a slot in each lane with free capacity and returns these lanes. `release` frees
        the slots. A scan claims the work of the other lanes.
        """
        capacity, free = self._capacity(), MAX_DELIVERIES - len(self._tasks)
        free = max(0, min(free, capacity.per_tenant - self._tenants[tenant_id]))
        # New work must not overtake work that is waiting.
        limit = 1 if self._has_waiting_work else capacity.per_lane
        reserved = [lane for lane in lanes if self._lanes[lane] < limit][:free]
        self._has_waiting_work |= len(reserved) < len(lanes)
        for lane in reserved:
            self._add_to_counts(lane, tenant_id, 1)
        return reserved

    def release(self, tenant_id: str, lanes: Collection[str]) -> None:
        for lane in lanes:
            self._add_to_counts(lane, tenant_id, -1)

    def _add_to_counts(self, lane: str, tenant_id: str, change: int) -> None:
        for counts, key in ((self._lanes, lane), (self._tenants, tenant_id)):
            counts[key] += change
            if not counts[key]:
                del counts[key]

    def run_follow_up(self, follow_up: FollowUp) -> None:
        for leased in follow_up.leased:
            self._start(leased.work, leased.payload)
        if follow_up.waiting:
            self._scan_soon()

    def wake(self) -> None:
        """Makes the next scan start now."""
        self._scan_at = 0.0
        self._wakeup.set()

    def stop(self) -> None:
        """Ends the loop after the current scan, which starts its rows or puts them back."""
        self._stopping = True
        self._wakeup.set()

    async def _put_back(self, row: WorkRow) -> None:
        await self._runner.put_back(row)
        self._put_back_at = time.monotonic() + PUT_BACK_SECONDS
        self._scan_soon(PUT_BACK_SECONDS)

    def _scan_soon(self, seconds: float = _SOON_SECONDS) -> None:
        """Scans after a short wait, so that deliveries that end meanwhile free their slots."""
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
        """Runs work that was claimed by its id because a request waits for it."""
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
        """Claims due work in the next lanes: retries, and work whose lease expired. Returns the
        number of claimed rows.
        """
        limit = min(MAX_DELIVERIES - len(self._tasks), _BATCH)
        seconds = self._services.settings.lease_seconds
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
                loaded = await requests.load(tx, [row.ref_id or "" for row in rows]) if rows else {}
            await self._start_rows(rows, loaded)
        self._has_waiting_work = limit <= 0 or self._is_full()
        if rows and len(rows) == limit:
            self._scan_at = 0.0
        elif self._cursor:
            self._scan_at = time.monotonic() + _NEXT_LANES_SECONDS
        return len(rows)

    def _capacity(self) -> Capacity:
        """Each tenant may use half of the free slots, so that some remain for other tenants."""
        share = min(MAX_PER_TENANT, (MAX_DELIVERIES - len(self._tasks)) // 2)
        share = max(MAX_PER_ENDPOINT, share)
        return Capacity(self._lanes, self._tenants, MAX_PER_ENDPOINT, share)

    def _is_full(self) -> bool:
        """True when a lane or a tenant is at its limit, so that more of its work may be due."""
        capacity = self._capacity()
        return any(count >= capacity.per_lane for count in self._lanes.values()) or any(
            count >= capacity.per_tenant for count in self._tenants.values()
        )

    async def _start_rows(self, rows: list[WorkRow], loaded: Mapping[str, object]) -> None:
        excess = []
        for row in rows:
            has_lane_slot = self._lanes[row.lane or ""] < MAX_PER_ENDPOINT
            if has_lane_slot and self._tenants[row.tenant_id or ""] < MAX_PER_TENANT:
                self._start(row, loaded.get(row.ref_id or ""))
            else:
                # Other deliveries took the slots while these rows were claimed.
                excess.append(row)
        for row in excess:
            await self._put_back(row)

    def _start(self, row: WorkRow, request: object) -> None:
        lane, tenant = row.lane or "", row.tenant_id or ""
        self._add_to_counts(lane, tenant, 1)
        if self._runner.accepting:
            task = self._runner.start(row, request)
        else:
            task = asyncio.create_task(self._runner.put_back(row))
        self._tasks.add(task)
        task.add_done_callback(partial(self._on_task_done, lane, tenant))

    def _on_task_done(self, lane: str, tenant: str, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._add_to_counts(lane, tenant, -1)
        if self._has_waiting_work:
            self._scan_soon()
