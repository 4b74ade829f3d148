"""The live stream within this process: polling, late rows, and its end."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest

from app.domain.messaging.notifications import feed
from app.domain.messaging.notifications.feed import Feed
from app.domain.messaging.notifications.schemas import NotificationView
from app.kit import sse
from app.kit.errors import RateLimited
from app.security.principal import Principal
from app.services import Services
from tests.assertions import wait_until
from tests.database import run_sql
from tests.messaging.notifications.center.post_office import add_notification
from tests.world import Client

_SECONDS = 10.0


@pytest.fixture(autouse=True)
def _fast_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "POLL_SECONDS", 0.02)


class Stream:
    def __init__(self, batches: AsyncGenerator[list[NotificationView], None]) -> None:
        self._batches = batches

    async def read(self) -> list[str]:
        """Returns the titles of the next notifications. Raises StopAsyncIteration at the end."""
        async with asyncio.timeout(_SECONDS):
            return [item.title for item in await anext(self._batches)]

    async def read_all(self, count: int) -> list[str]:
        titles: list[str] = []
        while len(titles) < count:
            titles += await self.read()
        return titles


def _principal_of(client: Client, role: str = "agent_developer") -> Principal:
    ids = (client.user_id, client.tenant_id, role, client.session_id)
    return Principal(*ids, frozenset())


@asynccontextmanager
async def _open_stream(
    services: Services, client: Client, last_id: str | None = None
) -> AsyncIterator[Stream]:
    """Yields a stream that is open."""
    async with aclosing(feed.stream(services, _principal_of(client), last_id)) as batches:
        stream = Stream(batches)
        assert await stream.read() == []
        yield stream


async def test_a_notification_arrives_without_a_hint(developer: Client, services: Services) -> None:
    """As while Redis is unavailable."""
    async with _open_stream(services, developer) as stream:
        await add_notification(services, developer, "Without a hint")
        assert await stream.read() == ["Without a hint"]


async def test_a_hint_makes_a_notification_arrive_at_once(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "POLL_SECONDS", 60.0)

    async def announce() -> bool:
        """Again and again, until this process has subscribed to the channel."""
        await services.get(Feed).announce([developer.user_id])
        return reading.done()

    async with _open_stream(services, developer) as stream:
        reading = asyncio.create_task(stream.read())
        await add_notification(services, developer, "With a hint")
        await wait_until(announce)
        assert await reading == ["With a hint"]


async def test_a_row_that_is_committed_late_is_not_missed(
    developer: Client, services: Services
) -> None:
    """Its time is that of its transaction's begin, before rows that were read already."""
    async with _open_stream(services, developer) as stream:
        await add_notification(services, developer, "First")
        assert await stream.read() == ["First"]
        await add_notification(services, developer, "Late", seconds_ago=20)
        assert await stream.read() == ["Late"]
        await add_notification(services, developer, "Next")
        assert await stream.read() == ["Next"]


async def test_a_row_from_before_the_stream_that_is_committed_late_is_not_missed(
    developer: Client, services: Services
) -> None:
    await add_notification(services, developer, "Seen", seconds_ago=10)
    async with _open_stream(services, developer) as stream:
        await add_notification(services, developer, "Late", seconds_ago=20)
        assert await stream.read() == ["Late"]


async def test_more_than_a_batch_is_read_in_order_and_once(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "_BATCH", 3)
    last_id = await add_notification(services, developer, "Last", seconds_ago=1000)
    for number in range(10):
        await add_notification(services, developer, str(number), seconds_ago=900 - 80 * number)
    async with _open_stream(services, developer, last_id) as stream:
        assert await stream.read_all(10) == [str(number) for number in range(10)]
        await add_notification(services, developer, "New")
        assert await stream.read() == ["New"]


async def test_rows_of_the_same_time_as_the_last_one_are_not_missed(
    developer: Client, services: Services
) -> None:
    ids = [await add_notification(services, developer, str(number)) for number in range(4)]
    sql = "UPDATE notifications SET created_at = now() WHERE user_id = $1"
    await run_sql(services, sql, developer.user_id)
    async with _open_stream(services, developer, sorted(ids)[1]) as stream:
        # Those before the last one may come again; the last one itself does not.
        assert await stream.read_all(3) == ["0", "2", "3"]


async def test_a_stream_ends_with_its_session(developer: Client, services: Services) -> None:
    async with _open_stream(services, developer) as stream:
        await developer.post("/auth/logout")
        with pytest.raises(StopAsyncIteration):
            await stream.read()


async def test_a_stream_ends_when_its_user_is_deactivated(
    developer: Client, services: Services
) -> None:
    async with _open_stream(services, developer) as stream:
        sql = "UPDATE users SET status = 'inactive' WHERE id = $1"
        await run_sql(services, sql, developer.user_id)
        with pytest.raises(StopAsyncIteration):
            await stream.read()


async def test_a_stream_ends_after_its_time(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "STREAM_SECONDS", 0.05)
    monkeypatch.setattr(feed, "POLL_SECONDS", 60.0)
    async with _open_stream(services, developer) as stream:
        with pytest.raises(StopAsyncIteration):
            await stream.read()


async def test_a_stream_that_ended_makes_room_for_another(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "MAX_STREAMS_PER_USER", 1)
    listeners = services.get(Feed)
    async with _open_stream(services, developer):
        with pytest.raises(RateLimited):
            listeners.check_streams(developer.user_id)
    listeners.check_streams(developer.user_id)
