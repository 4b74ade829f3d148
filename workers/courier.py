"""The courier claims due deliveries in batches and limits how many run at a time.

There is a limit per endpoint (its lane) and per tenant, so that endpoints that do not respond never
delay other deliveries.
"""

import time
from collections.abc import Collection, Mapping
from typing import Final

from app.domain.deliveries import requests
from app.domain.deliveries.service import DELIVER
from app.kit.work import FollowUp
from app.services import Services
from db.lanes import Capacity
from db.ledger import WorkRow
from db.session import Tx
from workers.lane_scanner import LaneScanner
from workers.runner import PUT_BACK_SECONDS, Runner

MAX_DELIVERIES: Final = 500
MAX_PER_TENANT: Final = 120
MAX_PER_ENDPOINT: Final = 10


class Courier(LaneScanner):
    def __init__(self, services: Services, runner: Runner) -> None:
        super().__init__(services, runner, DELIVER.name, slots=MAX_DELIVERIES, share=MAX_PER_TENANT)
        # When work that was put back becomes due again.
        self._put_back_at = 0.0

    def reserve(self, tenant_id: str, lanes: list[str]) -> list[str]:
        """Reserves a slot in each lane with free capacity and returns these lanes. `release` frees
        the slots. A scan claims the work of the other lanes.
        """
        capacity, free = self.capacity(), MAX_DELIVERIES - len(self._tasks)
        free = max(0, min(free, capacity.per_tenant - self._tenants[tenant_id]))
        is_full = self._has_no_slots or tenant_id in self._full_tenants
        # New work must not overtake work that is waiting.
        waiting = set(lanes) if is_full else self._full_lanes
        reserved = [
            lane
            for lane in lanes
            if self._lanes[lane] < (1 if lane in waiting else capacity.per_lane)
        ][:free]
        self._full_lanes.update(set(lanes).difference(reserved))
        for lane in reserved:
            self._add_to_counts(lane, tenant_id, 1)
        return reserved

    def release(self, tenant_id: str, lanes: Collection[str]) -> None:
        for lane in lanes:
            self._add_to_counts(lane, tenant_id, -1)

    def run_follow_up(self, follow_up: FollowUp) -> None:
        for leased in follow_up.leased:
            self._start(leased.work, leased.payload)
        if follow_up.waiting:
            self._scan_soon()

    async def run_claimed(self, row: WorkRow) -> None:
        """Runs work that was claimed by its id because a request waits for it."""
        if self._has_slot(row, self.capacity()) and len(self._tasks) < MAX_DELIVERIES:
            self._start(row, None)
        else:
            await self._put_back([row])

    async def scan(self) -> int:
        count = await super().scan()
        if self._put_back_at > time.monotonic():
            self._scan_at = min(self._scan_at, self._put_back_at)
        return count

    def capacity(self) -> Capacity:
        """Each tenant may use half of the free slots, so that some remain for other tenants."""
        share = min(MAX_PER_TENANT, (MAX_DELIVERIES - len(self._tasks)) // 2)
        share = max(MAX_PER_ENDPOINT, share)
        return Capacity(self._lanes, self._tenants, MAX_PER_ENDPOINT, share)

    async def _load_payloads(self, tx: Tx, rows: list[WorkRow]) -> Mapping[str, object]:
        return await requests.load(tx, [row.ref_id or "" for row in rows])

    async def _start_rows(self, rows: list[WorkRow], payloads: Mapping[str, object]) -> None:
        limits = Capacity(self._lanes, self._tenants, MAX_PER_ENDPOINT, MAX_PER_TENANT)
        excess = []
        for row in rows:
            if self._has_slot(row, limits):
                self._start(row, payloads.get(row.ref_id or ""))
            else:
                # Other deliveries took the slots while these rows were claimed.
                excess.append(row)
        if excess:
            await self._put_back(excess)

    def _has_slot(self, row: WorkRow, capacity: Capacity) -> bool:
        lane, tenant = self._lanes[row.lane or ""], self._tenants[row.tenant_id or ""]
        return lane < capacity.per_lane and tenant < capacity.per_tenant

    async def _put_back(self, rows: list[WorkRow]) -> None:
        self._unstarted += rows
        await self._put_back_unstarted()
        self._put_back_at = time.monotonic() + PUT_BACK_SECONDS
        self._scan_soon(PUT_BACK_SECONDS)
