"""Takes due deliveries many at a time, and keeps them out of each other's way.

An endpoint that hangs holds a few places, a tenant whose endpoints all hang some more; the others
never wait for them. Without Redis and without SAQ: the ledger's rows are the queue.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from typing import Final

from app.domain.subscriptions.fan_out import Begin
from app.domain.webhooks import parcels
from app.domain.webhooks.parcels import Parcel
from app.kit import logs
from app.parts import Parts
from db import ledger
from db.ledger import Room, WorkRow
from db.session import ALL_TENANTS, Tx
from workers.runner import PUT_BACK_SECONDS, Runner

log = logs.get("courier")

AT_ONCE: Final = 500
AT_ONCE_OF_TENANT: Final = 120
AT_ONCE_TO_ENDPOINT: Final = 10
_BATCH = 200
_EVERY_SECONDS = 1.0
_BREATH_SECONDS = 0.02
_PAUSE_SECONDS = 0.1


class Courier:
    def __init__(self, parts: Parts, runner: Runner) -> None:
        self._parts = parts
        self._runner = runner
        self._tasks: set[asyncio.Task[None]] = set()
        self._lanes: Counter[str] = Counter()
        self._tenants: Counter[str] = Counter()
        self._news = asyncio.Event()
        self._look_at = 0.0
        # Until then, what was put back is due again.
        self._back_at = 0.0
        self._after = ""
        self._held_back = False
        self._stopping = False

    def reserve(self, tenant_id: str, lanes: list[str]) -> list[str]:
        """Places in those lanes that there is room for, until they are released; what there is no
        room for is found by looking.
        """
        room, free = self._room(), AT_ONCE - len(self._tasks)
        free = max(0, min(free, room.of_tenant - self._tenants[tenant_id]))
        # Where others may wait already, whoever comes now goes behind them.
        most = 1 if self._held_back else room.of_lane
        fitting = [lane for lane in lanes if self._lanes[lane] < most][:free]
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

    def take(self, began: Begin) -> None:
        for one in began.ready:
            self._carry(one.work, one.parcel)
        if began.waiting:
            self._look_soon()

    def wake(self) -> None:
        """Look now, not within the second."""
        self._look_at = 0.0
        self._news.set()

    def stop(self) -> None:
        """Once what is being claimed has begun, or was put back."""
        self._stopping = True
        self._news.set()

    async def _put_back(self, row: WorkRow) -> None:
        await self._runner.put_back(row)
        self._back_at = time.monotonic() + PUT_BACK_SECONDS
        self._look_soon(PUT_BACK_SECONDS)

    def _look_soon(self, seconds: float = _BREATH_SECONDS) -> None:
        """Not at once: others that end just now make room, too."""
        self._look_at = min(self._look_at, time.monotonic() + seconds)
        self._news.set()

    async def run(self) -> None:
        while not self._stopping:
            self._news.clear()
            try:
                if time.monotonic() >= self._look_at:
                    await self.look()
            except Exception as error:  # noqa: BLE001  # a database that is away comes back
                log.warning("deliveries not looked for", reason=str(error)[:200])
                self._look_at = time.monotonic() + _EVERY_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._look_at - time.monotonic())):
                    await self._news.wait()

    async def adopt(self, row: WorkRow) -> None:
        """One that was claimed by its id, because somebody waits for it."""
        room = self._room()
        lane, tenant = self._lanes[row.lane or ""], self._tenants[row.tenant_id or ""]
        if lane < room.of_lane and tenant < room.of_tenant and len(self._tasks) < AT_ONCE:
            self._carry(row, None)
        else:
            await self._put_back(row)

    async def look(self) -> int:
        """Claim what is due in the next lanes: retries, and what others left behind. Gives how
        many.
        """
        limit, seconds = min(AT_ONCE - len(self._tasks), _BATCH), self._parts.settings.lease_seconds
        self._look_at = time.monotonic() + _EVERY_SECONDS
        if self._back_at > time.monotonic():
            self._look_at = min(self._look_at, self._back_at)
        rows: list[WorkRow] = []
        if limit > 0:
            async with self._parts.db.tx(ALL_TENANTS, read_only=True) as tx:
                raw, room = await tx.raw(), self._room()
                rows, self._after = await ledger.claim_lanes(raw, limit, room, seconds, self._after)
                await self._begin(tx, rows)
        self._held_back = limit <= 0 or self._is_full()
        if rows and len(rows) == limit:
            self._look_at = 0.0
        elif self._after:
            self._look_at = time.monotonic() + _PAUSE_SECONDS
        return len(rows)

    def _room(self) -> Room:
        """A tenant may have half of what is free, so that something is left for the next one."""
        share = min(AT_ONCE_OF_TENANT, (AT_ONCE - len(self._tasks)) // 2)
        share = max(AT_ONCE_TO_ENDPOINT, share)
        return Room(self._lanes, self._tenants, AT_ONCE_TO_ENDPOINT, share)

    def _is_full(self) -> bool:
        """Somebody has all that they may have, and perhaps more is due."""
        room = self._room()
        return any(count >= room.of_lane for count in self._lanes.values()) or any(
            count >= room.of_tenant for count in self._tenants.values()
        )

    async def _begin(self, tx: Tx, rows: list[WorkRow]) -> None:
        found = await parcels.load(tx, [row.ref_id or "" for row in rows]) if rows else {}
        for row in rows:
            if self._lanes[row.lane or ""] < AT_ONCE_TO_ENDPOINT:
                self._carry(row, found.get(row.ref_id or ""))
            else:
                # Somebody came first while these were claimed.
                await self._put_back(row)

    def _carry(self, row: WorkRow, parcel: Parcel | None) -> None:
        lane, tenant = row.lane or "", row.tenant_id or ""
        self._count(lane, tenant, 1)
        if self._runner.accepting:
            task = self._runner.start(row, parcel)
        else:
            task = asyncio.create_task(self._runner.put_back(row))
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, lane, tenant))

    def _ended(self, lane: str, tenant: str, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._count(lane, tenant, -1)
        if self._held_back:
            self._look_soon()
