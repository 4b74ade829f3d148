"""The live feed: tells web processes which users have new notifications, and streams them.

Redis only carries the hint; the rows are read from Postgres, and also without a hint now and then.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Final

import msgspec
from redis.exceptions import RedisError

from app.jobs import background
from app.jobs.pubsub import listen_forever
from app.kit import logs, sse
from app.kit.redis import connect
from app.security import sessions
from app.security.principal import Principal
from app.services import Services

from . import center_queries as queries
from .schemas import NotificationView

log = logs.get("notifications")

CHANNEL: Final = "parley:notified"
# How often the rows are read without a hint, and the session is checked.
POLL_SECONDS: Final = 15.0
# How long one stream lasts; then its client connects again and continues where it was.
STREAM_SECONDS = 3600.0
# A row may become visible this long after its time.
_OVERLAP = timedelta(seconds=30)
_BATCH = 200
_PUBLISH_SECONDS = 1.0


class Feed:
    """One per process. Listens to Redis from the first stream on."""

    def __init__(self, redis_url: str) -> None:
        self._redis = connect(redis_url)
        self._listening_redis = connect(redis_url, wait_seconds=None)
        self._listeners: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._task: asyncio.Task[None] | None = None

    async def announce(self, user_ids: list[str]) -> None:
        """Called after the commit of new notifications."""
        if user_ids:
            with suppress(RedisError, OSError, TimeoutError):
                async with asyncio.timeout(_PUBLISH_SECONDS):
                    await self._redis.publish(CHANNEL, msgspec.json.encode(user_ids))

    def check_streams(self, user_id: str) -> None:
        sse.check_streams(len(self._listeners.get(user_id, ())))

    @contextmanager
    def listen(self, user_id: str) -> Iterator[asyncio.Event]:
        """The event is set when the user may have new notifications."""
        if self._task is None:
            self._task = background.start(
                listen_forever(self._listening_redis, CHANNEL, self._on_message)
            )
        event = asyncio.Event()
        self._listeners[user_id].add(event)
        try:
            yield event
        finally:
            self._listeners[user_id].discard(event)
            if not self._listeners[user_id]:
                del self._listeners[user_id]

    def _on_message(self, message: bytes) -> None:
        try:
            user_ids = msgspec.json.decode(message, type=list[str])
        except msgspec.DecodeError:
            log.warning("a message on the channel of notifications is not readable")
            return
        for user_id in user_ids:
            for event in self._listeners.get(user_id, ()):
                event.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for redis in (self._redis, self._listening_redis):
            with suppress(RedisError, OSError):
                await redis.aclose()


class NewNotifications:
    """Reads the notifications of a user that were not read yet. `seen` are those of the last
    seconds before `since` that the client does not need, with their times.
    """

    def __init__(
        self,
        services: Services,
        principal: Principal,
        since: datetime,
        seen: dict[str, datetime],
    ) -> None:
        self._services = services
        self._principal = principal
        self._since = since
        self._seen = seen

    async def read(self) -> list[NotificationView]:
        """Returns the oldest first."""
        since, seen = self._since - _OVERLAP, list(self._seen)
        async with self._services.db.tx(self._principal.scope, autocommit=True) as tx:
            items = await queries.list_since(tx, self._principal.user_id, since, seen, _BATCH)
        for item in items:
            self._seen[item.id] = item.created_at
            self._since = max(self._since, item.created_at)
        oldest = self._since - 2 * _OVERLAP
        self._seen = {id_: at for id_, at in self._seen.items() if at >= oldest}
        return items


async def _start_after(
    services: Services, principal: Principal, last_id: str | None
) -> NewNotifications:
    """Starts after the notification that a client saw last, or else now. Those of the seconds
    before the last one may come again: one of them may have been committed later.
    """
    user_id = principal.user_id
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        last_at = await queries.find_time(tx, user_id, last_id) if last_id else None
        if last_id is not None and last_at is not None:
            return NewNotifications(services, principal, last_at, {last_id: last_at})
        now = await queries.read_time(tx)
        seen = await queries.list_ids_since(tx, user_id, now - _OVERLAP)
    return NewNotifications(services, principal, now, seen)


async def stream(
    services: Services, principal: Principal, last_id: str | None
) -> AsyncGenerator[list[NotificationView], None]:
    """Yields new notifications until the session ends, or an hour is over."""
    loop = asyncio.get_running_loop()
    end = loop.time() + STREAM_SECONDS
    ids = (principal.tenant_id, principal.session_id)
    with services.get(Feed).listen(principal.user_id) as hint:
        new = await _start_after(services, principal, last_id)
        # The stream is open.
        yield []
        while True:
            hint.clear()
            if items := await new.read():
                yield items
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(min(POLL_SECONDS, end - loop.time())):
                    await hint.wait()
            if loop.time() >= end or not await sessions.is_live(services.db, *ids):
                return
