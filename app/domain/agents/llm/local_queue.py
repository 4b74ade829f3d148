"""The queue for the slots of the local model, which all processes share by Redis.

Every ticket has a lease, so that a process that was killed loses its places and slots. Without
Redis, requests go straight to the model, which has a queue of its own.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.jobs import background
from app.jobs.renewal import Renewal
from app.kit import logs
from app.kit.ids import new_id
from app.observe import metrics
from app.observe.heartbeat import Beat

from .errors import ModelBusy
from .protocol import QueueLimits, QueuePosition
from .providers import LOCAL

log = logs.get("models")

MAX_PLACES: Final = 64
SLOT_LEASE_SECONDS = 10.0
_PLACE_LEASE_SECONDS = 5.0
_RENEW_SECONDS = 2.0
# How often a ticket asks for its turn: the first in the queue most often.
_PAUSE_SECONDS = 0.1
_MAX_PAUSE_SECONDS = 1.0
# A position that does not change is reported again after this time.
_REPORT_SECONDS = 3.0
_HAS_SLOT, _NO_PLACE = 0, -1
_SCRIPT: Final = Path(__file__).with_suffix(".lua").read_text(encoding="utf-8")
_REDIS_ERRORS = (RedisError, OSError, TimeoutError)


class LocalQueue:
    def __init__(self, redis: Redis) -> None:
        self.redis = redis
        self.script = redis.register_script(_SCRIPT)

    def create_ticket(self, server: Beat, tenant_id: str, limits: QueueLimits) -> "Ticket":
        return Ticket(self, server, tenant_id, limits)


class Ticket:
    """A request's place in the queue of one model process, and then its slot."""

    def __init__(
        self, queue: LocalQueue, server: Beat, tenant_id: str, limits: QueueLimits
    ) -> None:
        self._queue = queue
        self._key = f"parley:model_queue:{server.name}"
        self._slots = server.slots
        self._id = new_id("tkt")
        self._tenant_id = tenant_id
        self._limits = limits
        self._since = 0
        self._renewal: Renewal | None = None

    async def wait(self) -> AsyncGenerator[QueuePosition, None]:
        """Yields the ticket's position when it changes, and now and then, until it has a slot.
        Raises ModelBusy when there is no place, or no slot within the time limit.
        """
        started = time.monotonic()
        last, reported_at = _HAS_SLOT, 0.0
        while (position := await self._ask()) != _HAS_SLOT:
            now = time.monotonic()
            waits = position != _NO_PLACE or self._limits.waits_for_place
            if not waits or now - started >= self._limits.seconds:
                metrics.MODEL_SECONDS.labels(LOCAL, "busy").observe(now - started)
                raise ModelBusy
            if position > 0 and (position != last or now - reported_at >= _REPORT_SECONDS):
                last, reported_at = position, now
                yield QueuePosition(position)
            await asyncio.sleep(_pause(position))
        self._renewal = Renewal(_RENEW_SECONDS, self._renew)
        if last != _HAS_SLOT:
            yield QueuePosition(_HAS_SLOT)

    def leave(self) -> None:
        """Frees the slot or the place."""
        if self._renewal is not None:
            self._renewal.stop()
        background.spawn(self._delete())

    async def _ask(self) -> int:
        """Returns the position, _HAS_SLOT or _NO_PLACE."""
        try:
            position, self._since = await self._call(has_slot=False)
        except _REDIS_ERRORS as error:
            if background.is_cancelled():
                raise asyncio.CancelledError from error
            log.warning("the local model's queue is unavailable", reason=type(error).__name__)
            return _HAS_SLOT
        return int(position)

    async def _renew(self) -> None:
        await self._call(has_slot=True)

    async def _call(self, *, has_slot: bool) -> Any:
        return await self._queue.script(
            keys=[self._key],
            args=[
                self._id,
                self._tenant_id,
                self._slots,
                self._since,
                int(has_slot),
                int(SLOT_LEASE_SECONDS * 1000),
                int(_PLACE_LEASE_SECONDS * 1000),
                self._limits.places,
                MAX_PLACES,
            ],
        )

    async def _delete(self) -> None:
        with suppress(*_REDIS_ERRORS):
            await self._queue.redis.hdel(self._key, self._id)


def _pause(position: int) -> float:
    seconds = _MAX_PAUSE_SECONDS if position == _NO_PLACE else _PAUSE_SECONDS * position
    return min(seconds, _MAX_PAUSE_SECONDS) * random.uniform(0.8, 1.2)  # noqa: S311  # no secret
