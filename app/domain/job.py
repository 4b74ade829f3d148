"""What a job function gets, and what it raises when its work is not done."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Final, Protocol

from app.jobs.work import FollowUp, WorkKind
from app.kit.ids import new_id
from app.services import Services
from db import ledger
from db.lanes import Capacity
from db.leases import Lease
from db.ledger import WorkRow
from db.session import ALL_TENANTS, Tx


class LeaseLost(Exception):
    """Another worker has this work now, or it was cancelled."""


class Retry(Exception):
    """The work is to be tried again, after `after_seconds` or else the delay of its kind.

    The reason is stored and shown, like that of GiveUp: it must not contain secrets.
    """

    def __init__(self, reason: str, after_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.after_seconds = after_seconds


class Postpone(Exception):
    """The work has to wait for other work. It is tried again soon; this attempt does not count."""


class GiveUp(Exception):
    """The work fails for good."""


class DeliverySlots(Protocol):
    """Runs deliveries within the limits of lanes and tenants."""

    def capacity(self) -> Capacity: ...

    def reserve(self, tenant_id: str, lanes: list[str]) -> Collection[str]: ...

    def release(self, tenant_id: str, lanes: Collection[str]) -> None: ...

    def run_follow_up(self, follow_up: FollowUp) -> None: ...

    async def run_claimed(self, row: WorkRow) -> None: ...

    def pause(self, lane: str, seconds: float) -> None: ...


NO_COURIERS: Final[Mapping[str, DeliverySlots]] = {}


class Job:
    """The argument of a job function: its work, the services, and transactions for its results."""

    def __init__(
        self,
        services: Services,
        row: WorkRow,
        payload: object = None,
        couriers: Mapping[str, DeliverySlots] = NO_COURIERS,
    ) -> None:
        self.services = services
        self.row = row
        # Data that was loaded when the work was claimed.
        self.payload = payload
        # Set once the outcome is written.
        self.outcome: str | None = None
        # By the kind of work that they run.
        self._couriers = couriers
        self._courier: DeliverySlots | None = None
        # The tenant and the lanes in which its courier has reserved slots for the follow-up work.
        self._reserved: tuple[str, Collection[str]] = ("", ())
        self.follow_up: FollowUp | None = None
        # Whether work may run next in the place of this one.
        self.may_continue = False
        # Work that the job has created with that lease.
        self.next_row: WorkRow | None = None

    def reserve(self, kind: WorkKind, tenant_id: str, lanes: list[str]) -> Collection[str]:
        """Reserves slots for follow-up work of a kind, and returns the lanes that got one."""
        self._courier = self._couriers.get(kind.name)
        if self._courier is not None:
            self._reserved = (tenant_id, self._courier.reserve(tenant_id, lanes))
        return self._reserved[1]

    def start_follow_up(self) -> None:
        if self.follow_up is not None and self._courier is not None:
            self._courier.run_follow_up(self.follow_up)

    def release_slots(self) -> None:
        if self._courier is not None:
            self._courier.release(*self._reserved)

    @cached_property
    def next_lease(self) -> Lease | None:
        """The lease of work that may run next in the place of this one; None when none may."""
        if not self.may_continue:
            return None
        return Lease(new_id("lea"), self.services.settings.lease_seconds)

    def pause_lane(self, seconds: float) -> None:
        """Claims no other work of this lane for a while."""
        if self.row.kind in self._couriers:
            self._couriers[self.row.kind].pause(self.row.lane or "", seconds)

    @property
    def tenant_id(self) -> str:
        return self.row.tenant_id or ""

    @property
    def ref_id(self) -> str:
        if self.row.ref_id is None:
            raise GiveUp("the work has no ref_id")
        return self.row.ref_id

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Tx]:
        async with self.services.db.tx(self.row.tenant_id or ALL_TENANTS, autocommit=True) as tx:
            yield tx

    async def hold(self, tx: Tx) -> None:
        """Locks the work's row, or raises LeaseLost. Call it before locking any other row, as
        cancelling does, so that the two never deadlock.
        """
        if not await ledger.lock_leased(await tx.raw(), self.row):
            raise LeaseLost(self.row.id)

    @asynccontextmanager
    async def checkpoint(self) -> AsyncIterator[Tx]:
        """A transaction for progress. Raises LeaseLost when the lease is lost."""
        async with self.services.db.tx(self.row.tenant_id or ALL_TENANTS) as tx:
            await self.hold(tx)
            yield tx

    @asynccontextmanager
    async def finish(self) -> AsyncIterator[Tx]:
        """A transaction for the results, which also records the outcome. Raises LeaseLost."""
        async with self.services.db.tx(self.row.tenant_id or ALL_TENANTS) as tx:
            yield tx
            if not await ledger.finish(await tx.raw(), self.row):
                raise LeaseLost(self.row.id)
        self.outcome = "done"

    @asynccontextmanager
    async def finish_first(self) -> AsyncIterator[Tx]:
        """Like `finish`, but records the outcome before the results, which locks the work's row
        first. Raises LeaseLost at once.
        """
        async with self.services.db.tx(self.row.tenant_id or ALL_TENANTS) as tx:
            if not await ledger.finish(await tx.raw(), self.row):
                raise LeaseLost(self.row.id)
            yield tx
        self.outcome = "done"


JobFunction = Callable[[Job], Awaitable[None]]
# Called in the transaction that gives up work, with the error.
OnDead = Callable[[Services, Tx, WorkRow, str], Awaitable[None]]
OnRetry = Callable[[Services, Tx, WorkRow], Awaitable[bool]]
OnAnyDead = Callable[[Tx, WorkRow, str], Awaitable[None]]
