"""The live event log: tells streams of which types events were recorded.

Events are recorded within many statements, and most of the time nobody listens. So nothing is
announced: one task for each tenant with open streams looks at the newest events every second.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

from app.jobs import background
from app.kit import logs, sse
from app.security import sessions
from app.security.principal import Principal
from app.services import Services
from db.session import DATABASE_ERRORS, Database, Scope

from . import live_queries as queries
from .live_queries import Figures

log = logs.get("events")

# How often the session of a stream is checked.
CHECK_SECONDS: Final = 15.0
# How long one stream lasts; then its client connects again.
STREAM_SECONDS: Final = 3600.0
_READ_SECONDS: Final = 1.0


class Listener:
    """Collects types until its stream takes them."""

    def __init__(self) -> None:
        self._types: set[str] = set()
        self._is_told = asyncio.Event()

    def tell(self, types: Iterable[str]) -> None:
        self._types.update(types)
        if self._types:
            self._is_told.set()

    async def take(self, seconds: float) -> list[str]:
        """Waits for the next ones, but no longer than this."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._is_told.wait()
        types, self._types = sorted(self._types), set()
        self._is_told.clear()
        return types


class LiveEvents:
    """One per process. Reads the log of a tenant while somebody listens."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._listeners: defaultdict[Scope, set[Listener]] = defaultdict(set)
        self._tasks: dict[Scope, tuple[asyncio.Task[None], asyncio.Event]] = {}
        self._streams: Counter[str] = Counter()

    @property
    def is_reading(self) -> bool:
        return bool(self._tasks)

    def check_streams(self, user_id: str) -> None:
        sse.check_streams(self._streams[user_id])

    @asynccontextmanager
    async def listen(self, scope: Scope, user_id: str) -> AsyncIterator[Listener]:
        """The listener is told of all events that are recorded from now on."""
        listener = Listener()
        listeners = self._listeners[scope]
        listeners.add(listener)
        self._streams[user_id] += 1
        try:
            await self._start(scope)
            yield listener
        finally:
            listeners.discard(listener)
            self._streams -= Counter([user_id])

    async def _start(self, scope: Scope) -> None:
        if scope not in self._tasks:
            is_ready = asyncio.Event()
            self._tasks[scope] = background.start(self._watch(scope, is_ready)), is_ready
        _, is_ready = self._tasks[scope]
        await is_ready.wait()

    async def _watch(self, scope: Scope, is_ready: asyncio.Event) -> None:
        """Ends when nobody listens any more."""
        try:
            before = await self._read(scope, {})
            is_ready.set()
            while True:
                await asyncio.sleep(_READ_SECONDS)
                if not self._listeners[scope]:
                    return
                after = await self._read(scope, before)
                types = [name for name, now in after.items() if now.is_newer(before.get(name))]
                for listener in self._listeners[scope]:
                    listener.tell(types)
                before = after
        finally:
            is_ready.set()
            del self._tasks[scope]
            self._listeners.pop(scope, None)

    async def _read(self, scope: Scope, before: Mapping[str, Figures]) -> Mapping[str, Figures]:
        """While the database is unavailable, nothing has happened."""
        try:
            async with self._db.tx(scope, autocommit=True) as tx:
                return await queries.read_newest(tx)
        except DATABASE_ERRORS as error:
            log.warning(
                "the newest events were not read", reason=f"{type(error).__name__}: {error}"
            )
            return before

    async def close(self) -> None:
        tasks = [task for task, _ in self._tasks.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def stream(services: Services, principal: Principal) -> AsyncGenerator[list[str], None]:
    """Yields the types of new events until the session ends, or an hour is over. The first yield is
    empty: the stream is open.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + STREAM_SECONDS
    ids = (principal.tenant_id, principal.session_id)
    async with services.get(LiveEvents).listen(principal.scope, principal.user_id) as listener:
        yield []
        while True:
            check_at = min(loop.time() + CHECK_SECONDS, end)
            while (seconds := check_at - loop.time()) > 0:
                if types := await listener.take(seconds):
                    yield types
            if loop.time() >= end or not await sessions.is_live(services.db, *ids):
                return
