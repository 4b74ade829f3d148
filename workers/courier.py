"""A courier claims due deliveries of one kind in batches and limits how many run at a time.

There is a limit per endpoint or channel (its lane) and per tenant, so that endpoints that do not
respond never delay other deliveries.
"""

import time
from collections.abc import Collection, Mapping

from app.domain.area import CourierOptions
from app.jobs.work import FollowUp
from app.services import Services
from db.lanes import Capacity
from db.ledger import WorkRow
from db.session import Tx
from workers.lane_scanner import LaneScanner
from workers.runner import PUT_BACK_SECONDS, Runner

_MAX_LANE_LIMITS = 1000


class Courier(LaneScanner):
    def __init__(
        self, services: Services, runner: Runner, kind: str, options: CourierOptions
    ) -> None:
        super().__init__(services, runner, kind, slots=options.total, share=options.per_tenant)
        self._options = options
        # The limits of lanes that differ from `per_lane`.
        self._lane_limits: dict[str, int] = {}
        # When work that was put back becomes due again.
        self._put_back_at = 0.0
        # Until when no work of a lane is claimed, by lane.
        self._paused: dict[str, float] = {}

    def pause(self, lane: str, seconds: float) -> None:
        """Claims nothing more of a lane for a while, because all of it would have to wait."""
        self._paused[lane] = time.monotonic() + seconds

    def reserve(self, tenant_id: str, lanes: list[str]) -> list[str]:
        """Reserves a slot in each lane with free capacity and returns these lanes. `release` frees
        the slots. A scan claims the work of the other lanes.
        """
        capacity, free = self.capacity(), self._options.total - len(self._tasks)
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
        has_slot = self._has_slot(row, self.capacity().per_tenant)
        if has_slot and len(self._tasks) < self._options.total:
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
        limits = self._options
        share = min(limits.per_tenant, (limits.total - len(self._tasks)) // 2)
        share = max(limits.per_lane, share)
        return Capacity(self._count_lanes(), self._tenants, limits.per_lane, share)

    def _count_lanes(self) -> Mapping[str, int]:
        """Returns the count of each lane, to compare with `per_lane`: a lane with a higher limit
        counts for less than it has, and one that is paused as full.
        """
        if not self._paused and not self._lane_limits:
            return self._lanes
        per_lane, now = self._options.per_lane, time.monotonic()
        self._paused = {lane: until for lane, until in self._paused.items() if until > now}
        adjusted = {
            lane: self._lanes[lane] + per_lane - limit for lane, limit in self._lane_limits.items()
        }
        return {**self._lanes, **adjusted, **dict.fromkeys(self._paused, per_lane)}

    async def _load_payloads(self, tx: Tx, rows: list[WorkRow]) -> Mapping[str, object]:
        payloads = await self._options.load(tx, [row.ref_id or "" for row in rows])
        if self._options.read_lane_limit is not None:
            for row in rows:
                if (payload := payloads.get(row.ref_id or "")) is not None:
                    self._set_lane_limit(row.lane or "", self._options.read_lane_limit(payload))
        return payloads

    def _set_lane_limit(self, lane: str, limit: int) -> None:
        if len(self._lane_limits) >= _MAX_LANE_LIMITS:
            self._lane_limits.clear()
        if limit != self._options.per_lane:
            self._lane_limits[lane] = limit
        else:
            # The channel has another provider now.
            self._lane_limits.pop(lane, None)

    async def _start_rows(self, rows: list[WorkRow], payloads: Mapping[str, object]) -> None:
        excess = []
        for row in rows:
            if self._has_slot(row, self._options.per_tenant):
                self._start(row, payloads.get(row.ref_id or ""))
            else:
                # Other deliveries took the slots while these rows were claimed.
                excess.append(row)
        if excess:
            await self._put_back(excess)

    def _has_slot(self, row: WorkRow, per_tenant: int) -> bool:
        lane = row.lane or ""
        limit = self._lane_limits.get(lane, self._options.per_lane)
        return self._lanes[lane] < limit and self._tenants[row.tenant_id or ""] < per_tenant

    async def _put_back(self, rows: list[WorkRow]) -> None:
        self._unstarted += rows
        await self._put_back_unstarted()
        self._put_back_at = time.monotonic() + PUT_BACK_SECONDS
        self._scan_soon(PUT_BACK_SECONDS)
