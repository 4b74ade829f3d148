"""A courier claims due deliveries of one kind in batches and limits how many run at a time.

There is a limit per endpoint or channel (its lane) and per tenant, so that endpoints that do not
respond never delay other deliveries.
"""

import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final

import msgspec

from app.domain.deliveries import requests
from app.domain.deliveries.service import DELIVER
from app.domain.notifications import sending
from app.domain.notifications.service import SEND
from app.kit.work import FollowUp
from app.services import Services
from db.lanes import Capacity
from db.ledger import WorkRow
from db.session import Tx
from workers.lane_scanner import LaneScanner
from workers.runner import PUT_BACK_SECONDS, Runner

# Loads what the jobs need, by the id of their delivery.
LoadPayloads = Callable[[Tx, list[str]], Awaitable[Mapping[str, Any]]]


class CourierLimits(msgspec.Struct, frozen=True):
    total: int
    per_tenant: int
    per_lane: int


WEBHOOKS: Final = CourierLimits(total=500, per_tenant=120, per_lane=10)
# A message is a session with a mail server, or a request to a service that has its own limits.
CHANNELS: Final = CourierLimits(total=200, per_tenant=40, per_lane=8)


class Courier(LaneScanner):
    def __init__(
        self,
        services: Services,
        runner: Runner,
        kind: str,
        load: LoadPayloads,
        limits: CourierLimits,
    ) -> None:
        super().__init__(services, runner, kind, slots=limits.total, share=limits.per_tenant)
        self._load = load
        self._limits = limits
        # When work that was put back becomes due again.
        self._put_back_at = 0.0
        # Until when no work of a lane is claimed, by lane.
        self._paused: dict[str, float] = {}

    @classmethod
    def for_webhooks(cls, services: Services, runner: Runner) -> "Courier":
        return cls(services, runner, DELIVER.name, requests.load, WEBHOOKS)

    @classmethod
    def for_channels(cls, services: Services, runner: Runner) -> "Courier":
        return cls(services, runner, SEND.name, sending.load, CHANNELS)

    def pause(self, lane: str, seconds: float) -> None:
        """Claims nothing more of a lane for a while, because all of it would have to wait."""
        self._paused[lane] = time.monotonic() + seconds

    def reserve(self, tenant_id: str, lanes: list[str]) -> list[str]:
        """Reserves a slot in each lane with free capacity and returns these lanes. `release` frees
        the slots. A scan claims the work of the other lanes.
        """
        capacity, free = self.capacity(), self._limits.total - len(self._tasks)
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
        if self._has_slot(row, self.capacity()) and len(self._tasks) < self._limits.total:
            self._start(row, None)
            # Others may have been accepted with it.
            self._scan_soon()
        else:
            await self._put_back([row])

    async def scan(self) -> int:
        count = await super().scan()
        if self._put_back_at > time.monotonic():
            self._scan_at = min(self._scan_at, self._put_back_at)
        return count

    def capacity(self) -> Capacity:
        """Each tenant may use half of the free slots, so that some remain for other tenants."""
        limits = self._limits
        share = min(limits.per_tenant, (limits.total - len(self._tasks)) // 2)
        share = max(limits.per_lane, share)
        return Capacity(self._lanes_with_pauses(), self._tenants, limits.per_lane, share)

    def _lanes_with_pauses(self) -> Mapping[str, int]:
        """Counts a paused lane as full."""
        if not self._paused:
            return self._lanes
        now = time.monotonic()
        self._paused = {lane: until for lane, until in self._paused.items() if until > now}
        return {**self._lanes, **dict.fromkeys(self._paused, self._limits.per_lane)}

    async def _load_payloads(self, tx: Tx, rows: list[WorkRow]) -> Mapping[str, object]:
        return await self._load(tx, [row.ref_id or "" for row in rows])

    async def _start_rows(self, rows: list[WorkRow], payloads: Mapping[str, object]) -> None:
        limits = Capacity(
            self._lanes, self._tenants, self._limits.per_lane, self._limits.per_tenant
        )
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
