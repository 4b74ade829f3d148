"""Claims due work of one kind in batches, within the limits of its lanes and tenants.

The ledger's rows are the queue: neither Redis nor SAQ is needed. Work beyond the limits stays as it
is until a slot is free.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from app.jobs import background
from app.kit import logs
from app.kit.ids import new_id
from app.services import Services
from db import fast, ledger
from db.lanes import Capacity
from db.ledger import WorkRow
from db.session import ALL_TENANTS, Tx
from workers.runner import Runner

log = logs.get("lanes")

_BATCH = 200
_SCAN_SECONDS = 1.0
_SOON_SECONDS = 0.02
_NEXT_SCAN_SECONDS = 0.1


class LaneScanner:
    """Runs at most `slots` jobs of a kind at a time, and at most `share` of one tenant."""

    def __init__(
        self, services: Services, runner: Runner, kind: str, *, slots: int, share: int
    ) -> None:
        self._services = services
        self._runner = runner
        self.kind = kind
        self._slots = slots
        self._share = share
        self._tasks: set[asyncio.Task[None]] = set()
        # Claimed rows that cannot be started; they are put back without counting an attempt.
        self._unstarted: list[WorkRow] = []
        self._lanes: Counter[str] = Counter()
        self._tenants: Counter[str] = Counter()
        self._claiming = asyncio.Lock()
        self._wakeup = asyncio.Event()
        self._slot_freed = asyncio.Event()
        self._scan_at = 0.0
        self._cursor = ""
        # What was at its limit during the last scan: more of its work may be due.
        self._full_lanes: set[str] = set()
        self._full_tenants: set[str] = set()
        self._has_no_slots = False
        self._stopping = False

    def wake(self) -> None:
        """Makes the next scan start now."""
        self._scan_at = 0.0
        self._wakeup.set()

    def stop(self) -> None:
        """Ends the loop after the current scan, which starts its rows or puts them back."""
        self._stopping = True
        self._wakeup.set()

    async def wait_for_slot(self) -> None:
        while len(self._tasks) >= self._slots:
            self._slot_freed.clear()
            await self._slot_freed.wait()

    def _scan_soon(self, seconds: float = _SOON_SECONDS) -> None:
        """Scans after a short wait, so that jobs that end meanwhile free their slots."""
        self._scan_at = min(self._scan_at, time.monotonic() + seconds)
        self._wakeup.set()

    async def run(self) -> None:
        while not self._stopping:
            self._wakeup.clear()
            try:
                if time.monotonic() >= self._scan_at:
                    await self.scan()
            except Exception as error:  # noqa: BLE001  # the database may be unavailable for a while
                log.warning("scan for due work failed", kind=self.kind, reason=str(error)[:200])
                self._scan_at = time.monotonic() + _SCAN_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._scan_at - time.monotonic())):
                    await self._wakeup.wait()

    async def scan(self) -> int:
        """Claims due work in the next lanes: new work, retries, and work whose lease expired.
        Returns the number of claimed rows.
        """
        await self._put_back_unstarted()
        self._scan_at = time.monotonic() + _SCAN_SECONDS
        self._full_lanes, self._full_tenants, self._has_no_slots = set(), set(), False
        # Before the claim too: what is full now is skipped, and may have a free slot afterwards.
        self._add_full()
        async with self._claiming:
            limit = min(self._slots - len(self._tasks), _BATCH)
            count = await self._claim(limit) if limit > 0 else 0
        self._add_full()
        return count

    def _add_full(self) -> None:
        capacity = self.capacity()
        self._full_lanes.update(capacity.full_lanes)
        self._full_tenants.update(capacity.full_tenants)
        self._has_no_slots = self._has_no_slots or len(self._tasks) >= self._slots

    def _add_filled(
        self,
        capacity: Capacity,
        lanes: Counter[str],
        tenants: Counter[str],
        rows: list[WorkRow],
    ) -> None:
        """Adds lanes and tenants whose free slots before the claim, which the counts are of, were
        all used by it: jobs that ended meanwhile do not mean that no more of their work is due.
        """
        for row in rows:
            lanes[row.lane or ""] += 1
            tenants[row.tenant_id or ""] += 1
        used = Capacity(lanes, tenants, capacity.per_lane, capacity.per_tenant)
        self._full_lanes.update(used.full_lanes)
        self._full_tenants.update(used.full_tenants)

    async def _put_back_unstarted(self) -> None:
        """Keeps rows for the next scan while Postgres is unavailable. One that Postgres refuses to
        change, because it is locked, becomes due when its lease expires: it must not stop scans.
        """
        while self._unstarted:
            row = self._unstarted.pop()
            try:
                await self._runner.put_back(row)
            except BaseException as error:
                if not fast.was_refused(error):
                    self._unstarted.append(row)
                raise

    async def run_new(self, work_id: str) -> None:
        """Runs work that was just accepted, without a scan, which costs more. New work does not
        overtake work that is waiting: then a scan decides.
        """
        await self.wait_for_slot()
        task = None if self._has_no_slots else await self._claim_one(work_id)
        if task is None:
            self.wake()
        else:
            await asyncio.wait([task])

    async def _claim_one(self, work_id: str) -> asyncio.Task[None] | None:
        seconds = self._services.settings.lease_seconds
        async with self._claiming:
            if len(self._tasks) >= self._slots:
                return None
            lanes = {**self._lanes, **dict.fromkeys(self._full_lanes, self._share)}
            tenants = {**self._tenants, **dict.fromkeys(self._full_tenants, self._share)}
            capacity = Capacity(lanes, tenants, self._share, self._share)
            async with self._services.db.tx(ALL_TENANTS, autocommit=True) as tx:
                row = await ledger.claim(await tx.raw(), work_id, new_id("lea"), seconds, capacity)
            return None if row is None else self._start(row, None)

    async def _claim(self, limit: int) -> int:
        seconds = self._services.settings.lease_seconds
        async with self._services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            connection, capacity = await tx.raw(), self.capacity()
            counts = Counter(capacity.lanes), Counter(capacity.tenants)
            scan = await ledger.claim_lanes(
                connection, self.kind, limit, capacity, seconds, self._cursor
            )
            self._add_filled(capacity, *counts, scan.rows)
            try:
                payloads = await self._load_payloads(tx, scan.rows) if scan.rows else {}
            except BaseException:
                self._unstarted += scan.rows
                raise
        await self._start_rows(scan.rows, payloads)
        self._cursor = scan.cursor
        if scan.rows and scan.has_more:
            self._scan_soon(0.0)
        elif scan.has_more or self._cursor:
            # Another worker has locked the rows at the same moment, or there are more lanes.
            self._scan_soon(_NEXT_SCAN_SECONDS)
        return len(scan.rows)

    def capacity(self) -> Capacity:
        return Capacity(self._lanes, self._tenants, self._share, self._share)

    async def _load_payloads(self, _tx: Tx, _rows: list[WorkRow]) -> Mapping[str, object]:
        """Returns data that the jobs need, by the `ref_id` of their work."""
        return {}

    async def _start_rows(self, rows: list[WorkRow], payloads: Mapping[str, object]) -> None:
        for row in rows:
            self._start(row, payloads.get(row.ref_id or ""))

    def _start(self, row: WorkRow, payload: object) -> asyncio.Task[None]:
        lane, tenant = row.lane or "", row.tenant_id or ""
        self._add_to_counts(lane, tenant, 1)
        if self._runner.accepting:
            task = self._runner.start(row, payload)
        else:
            task = background.spawn(self._runner.put_back(row))
        self._tasks.add(task)
        task.add_done_callback(partial(self._on_task_done, lane, tenant))
        return task

    def _on_task_done(self, lane: str, tenant: str, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._slot_freed.set()
        self._add_to_counts(lane, tenant, -1)
        if self._may_have_waiting_work(lane):
            self._scan_soon()

    def _may_have_waiting_work(self, lane: str) -> bool:
        """True when work may be waiting for the slot that was freed in a lane. A scan is not cheap,
        so that work of other lanes is left to the periodic one.
        """
        if self._has_no_slots or lane in self._full_lanes:
            return True
        # The share of a tenant may grow with the number of free slots.
        share = self.capacity().per_tenant if self._full_tenants else 0
        return any(self._tenants[tenant] < share for tenant in self._full_tenants)

    def _add_to_counts(self, lane: str, tenant_id: str, change: int) -> None:
        for counts, key in ((self._lanes, lane), (self._tenants, tenant_id)):
            counts[key] += change
            if not counts[key]:
                del counts[key]
