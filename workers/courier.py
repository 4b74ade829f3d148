"""Takes due deliveries many at a time, and keeps them out of each other's way.

An endpoint that hangs holds a few places, a tenant whose endpoints all hang some more; the others
never wait for them. Without Redis and without SAQ: the ledger's rows are the queue.
"""

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Final

from app.domain.webhooks import parcels
from app.domain.webhooks.parcels import Parcel
from app.kit import logs
from app.kit.work import KINDS
from app.parts import Parts
from db import ledger
from db.ledger import Room, WorkRow
from db.session import ALL_TENANTS
from workers.runner import Runner

log = logs.get("courier")

AT_ONCE: Final = 400
AT_ONCE_OF_TENANT: Final = 120
AT_ONCE_TO_ENDPOINT: Final = 10
_BATCH = 200
_EVERY_SECONDS = 1.0
_BREATH_SECONDS = 0.02


class Courier:
    def __init__(self, parts: Parts, runner: Runner) -> None:
        self._parts = parts
        self._runner = runner
        self._kinds = [kind.name for kind in KINDS.values() if kind.in_bulk]
        self._tasks: set[asyncio.Task[None]] = set()
        self._lanes: Counter[str] = Counter()
        self._tenants: Counter[str] = Counter()
        self._places: dict[str, asyncio.Semaphore] = {}
        self._news = asyncio.Event()
        self._held_back = False

    def wake(self) -> None:
        self._news.set()

    async def run_forever(self) -> None:
        while True:
            self._news.clear()
            try:
                if await self.round() == _BATCH:
                    continue
            except Exception as error:  # noqa: BLE001  # a database that is away comes back
                log.warning("deliveries not looked for", reason=str(error)[:200])
                await asyncio.sleep(_EVERY_SECONDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(_EVERY_SECONDS):
                    await self._news.wait()
                    # Whoever else is about to finish comes along.
                    await asyncio.sleep(_BREATH_SECONDS if self._held_back else 0)

    async def round(self) -> int:
        """Claim what is due and there is room for; gives how many."""
        free = AT_ONCE - len(self._tasks)
        room = self._room()
        self._held_back = free <= 0 or bool(room.full_lanes or room.full_tenants)
        if free <= 0:
            return 0
        settings = self._parts.settings
        async with self._parts.db.tx(ALL_TENANTS, read_only=True) as tx:
            limit = min(free, _BATCH)
            rows = await ledger.claim_due(
                await tx.raw(), self._kinds, limit, room, settings.lease_seconds
            )
            found = await parcels.load(tx, [row.ref_id or "" for row in rows]) if rows else {}
        for row in rows:
            self._begin(row, found.get(row.ref_id or ""))
        return len(rows)

    def _room(self) -> Room:
        lanes = [lane for lane, count in self._lanes.items() if count >= AT_ONCE_TO_ENDPOINT]
        tenants = [one for one, count in self._tenants.items() if count >= AT_ONCE_OF_TENANT]
        return Room(lanes, tenants, AT_ONCE_TO_ENDPOINT, AT_ONCE_OF_TENANT)

    def _begin(self, row: WorkRow, parcel: Parcel | None) -> None:
        lane, tenant = row.lane or "", row.tenant_id or ""
        self._lanes[lane] += 1
        self._tenants[tenant] += 1
        task = asyncio.create_task(self._carry(row, lane, parcel))
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._ended(done, lane, tenant))

    async def _carry(self, row: WorkRow, lane: str, parcel: Parcel | None) -> None:
        async with self._places.setdefault(lane, asyncio.Semaphore(AT_ONCE_TO_ENDPOINT)):
            if self._runner.accepting:
                await self._runner.run_claimed(row, parcel)
            else:
                await self._runner.put_back(row)

    def _ended(self, task: asyncio.Task[None], lane: str, tenant: str) -> None:
        self._tasks.discard(task)
        for counts, key in ((self._lanes, lane), (self._tenants, tenant)):
            counts[key] -= 1
            if not counts[key]:
                del counts[key]
        if lane not in self._lanes:
            self._places.pop(lane, None)
        if self._held_back:
            self._news.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a delivery was left to its lease", exc_info=error)
