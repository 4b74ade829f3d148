"""Accepts work: a ledger row in the caller's transaction, and a ring of the doorbell afterwards.

An area declares its kinds of work, with the functions that run them, in its `area.py`.
"""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

import msgspec
from redis.exceptions import RedisError
from saq.queue.redis import RedisQueue

from app.kit import logs, trace
from app.kit.ids import new_id
from app.kit.redis import connect
from db import ledger
from db.connection_use import check_wait
from db.ledger import WorkRow
from db.session import Database, Tx

log = logs.get("ledger")

QUEUES: Final = (
    *("chat", "ingest", "speech", "tools", "deliveries", "workflows"),
    *("imports", "sources", "refine", "default"),
)
RING_SECONDS = 0.25
_DONE_KEY_SECONDS = 60
_SLICE_SECONDS = 2.0
_MAX_LISTENERS = 100
CANCEL_CHANNEL: Final = "parley:cancel"
FINISHED: Final = frozenset({"done", "dead", "cancelled"})


class WorkKind(msgspec.Struct, frozen=True):
    """The queue, timeout and retry delays of one kind of work."""

    name: str
    queue: str = "default"
    timeout_seconds: float = 60
    retry_delays: tuple[float, ...] = (1, 5, 30, 120, 600, 3600)
    awaited: bool = False
    # Due rows are claimed by the courier. Their lane is the endpoint.
    in_bulk: bool = False
    # How many of them one process runs for a tenant at a time. Their lane is the tenant.
    per_tenant: int | None = None

    @property
    def has_lanes(self) -> bool:
        """True when due rows are claimed by their lanes, without the queue."""
        return self.in_bulk or self.per_tenant is not None

    @property
    def max_attempts(self) -> int:
        return len(self.retry_delays) + 1

    def insert_sql(self, source: str, tenant_id: str = "$1::text", **columns: str) -> str:
        """Returns an INSERT of work of this kind that selects the other columns from `source`."""
        own = {"kind": f"'{self.name}'", "max_attempts": str(self.max_attempts)}
        return ledger.insert_sql(source, **{"tenant_id": tenant_id} | own | columns)


class LeasedWork(NamedTuple):
    """Work that is already leased to this process, with its loaded payload."""

    work: WorkRow
    payload: object


class FollowUp(NamedTuple):
    """Work that a job created: the rows leased to this process, and how many more are waiting."""

    leased: Collection[LeasedWork] = ()
    waiting: int = 0


class Doorbell:
    """Wakes workers over Redis. Best effort: the workers' poller finds what it loses."""

    def __init__(self, redis_url: str, kinds: Mapping[str, WorkKind]) -> None:
        self.kinds = kinds
        self._redis = connect(redis_url)
        self._blocking_redis = connect(redis_url, wait_seconds=None)
        self._listeners = 0
        self._queues = {name: RedisQueue(self._redis, name=name) for name in QUEUES}

    async def ring(self, kind: WorkKind, work_id: str, dispatch_no: int = 0) -> bool:
        """Enqueues work. Returns True when the queue accepted it."""
        try:
            async with asyncio.timeout(RING_SECONDS):
                await self._queues[kind.queue].enqueue(
                    "run_work",
                    work_id=work_id,
                    key=f"{work_id}:{dispatch_no}",
                    timeout=int(kind.timeout_seconds) + 30,
                    retries=1,
                    # The lease replaces SAQ's heartbeat, which would sweep long running jobs.
                    heartbeat=0,
                    ttl=60,
                )
        except (RedisError, OSError, TimeoutError) as error:
            log.debug("doorbell not rung", work_id=work_id, reason=type(error).__name__)
            return False
        return True

    async def wake(self, kind_name: str, work_id: str) -> None:
        await self.ring(self.kinds[kind_name], work_id)

    async def announce_done(self, work_id: str) -> None:
        with suppress(RedisError, OSError, TimeoutError):
            async with asyncio.timeout(RING_SECONDS):
                pipe = self._redis.pipeline(transaction=False)
                pipe.rpush(_done_key(work_id), "1")
                pipe.expire(_done_key(work_id), _DONE_KEY_SECONDS)
                await pipe.execute()

    async def announce_cancel(self, work_id: str) -> None:
        with suppress(RedisError, OSError, TimeoutError):
            async with asyncio.timeout(RING_SECONDS):
                await self._redis.publish(CANCEL_CHANNEL, work_id)

    async def wait_for_done(self, work_id: str, seconds: float) -> None:
        """Returns when the work is announced done or the time is up; the caller reads the row."""
        check_wait("a worker")
        if self._listeners >= _MAX_LISTENERS:
            # Each listener holds a connection; callers beyond the limit poll.
            await asyncio.sleep(min(seconds, 0.5))
            return
        self._listeners += 1
        try:
            # A Redis that does not reply must not extend the time.
            async with asyncio.timeout(seconds + RING_SECONDS):
                done = await self._blocking_redis.blpop([_done_key(work_id)], timeout=seconds)
            if done is not None:
                # Another listener may wait for the same work.
                await self.announce_done(work_id)
        except (RedisError, OSError):
            await asyncio.sleep(min(seconds, 0.2))
        finally:
            self._listeners -= 1

    async def close(self) -> None:
        for redis in (self._redis, self._blocking_redis):
            with suppress(RedisError, OSError):
                await redis.aclose()


def _done_key(work_id: str) -> str:
    return f"parley:done:{work_id}"


async def accept(
    tx: Tx,
    kind: WorkKind,
    *,
    tenant_id: str | None,
    ref_id: str | None = None,
    dedupe_key: str | None = None,
    run_at: datetime | None = None,
    cause_event_id: str | None = None,
) -> str:
    """Writes a ledger row in the caller's transaction and returns its id; it runs after commit."""
    if kind.per_tenant is not None and tenant_id is None:
        raise ValueError(f"work of the kind {kind.name} needs a tenant, which is its lane")
    work_id, current = new_id("wrk"), trace.current()
    added = await ledger.accept(
        tx,
        tenant_id,
        work_id=work_id,
        kind=kind.name,
        ref_id=ref_id,
        dedupe_key=dedupe_key,
        max_attempts=kind.max_attempts,
        correlation_id=current.correlation_id,
        cause_event_id=cause_event_id or current.cause_event_id,
        lane=tenant_id if kind.per_tenant is not None else None,
        run_at=run_at,
    )
    if added and run_at is None:
        tx.wake(kind.name, work_id)
    return work_id


async def cancel(tx: Tx, doorbell: Doorbell, tenant_id: str | None, work_id: str) -> bool:
    """Stops unfinished work. Running work is interrupted and can no longer write."""
    cancelled = await ledger.cancel(tx, tenant_id, work_id)
    if cancelled:
        tx.after_commit.append(partial(doorbell.announce_cancel, work_id))
    return cancelled


async def cancel_many(
    tx: Tx, doorbell: Doorbell, tenant_id: str, work_ids: list[str], *, skip_locked: bool = False
) -> None:
    """Like `cancel`, in one statement. `skip_locked` is for callers that have locked a row of the
    work's area, which a worker locks after its work: the work that is about to end then goes on.
    """
    for row in await ledger.cancel_many(tx, tenant_id, work_ids, skip_locked=skip_locked):
        if row["was_running"]:
            tx.after_commit.append(partial(doorbell.announce_cancel, row["id"]))


async def wait(
    db: Database, doorbell: Doorbell, tenant_id: str, work_id: str, seconds: float
) -> str | None:
    """Returns the state of the work once it is finished or the time is up."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        async with db.tx(tenant_id, autocommit=True) as tx:
            state = await ledger.state_of(tx, tenant_id, work_id)
        left = deadline - loop.time()
        if state is None or state in FINISHED or left <= 0:
            return state
        await doorbell.wait_for_done(work_id, min(left, _SLICE_SECONDS))
