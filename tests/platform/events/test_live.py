"""GET /api/v1/event-log/stream over a socket."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import pytest

from app.domain.platform.events import live
from app.domain.platform.events import live_queries as queries
from app.domain.platform.events.live import LiveEvents
from app.domain.platform.events.live_queries import Figures
from app.kit.sse import MAX_STREAMS_PER_USER
from app.security.principal import Principal
from app.services import Services
from db.session import Tx
from tests.agents.definition.factories import create_agent
from tests.assertions import refused, wait_until
from tests.event_reader import SECONDS, EventReader, open_events
from tests.server import Server
from tests.stores import Stores
from tests.world import Client, World

_PATH = "/api/v1/event-log/stream"
_WEBHOOK = {"name": "Hook", "url": "https://hooks.example.com/1", "events": ["agent.created"]}


class TypeReader(EventReader):
    async def read_until(self, event_type: str) -> set[str]:
        """Returns all types until then."""
        types: set[str] = set()
        while event_type not in types:
            lines = await self.read()
            assert lines.keys() == {"event", "data"}
            assert lines["event"] == "events"
            types.update(json.loads(lines["data"])["types"])
        return types


@asynccontextmanager
async def _open(server: Server, caller: Client) -> AsyncIterator[TypeReader]:
    async with open_events(server, caller, _PATH) as answer:
        assert answer.status_code == 200
        reader = TypeReader(answer)
        await reader.wait_until_open()
        yield reader


async def test_each_new_event_is_told_once_more(server: Server, developer: Client) -> None:
    async with _open(server, developer) as reader, _open(server, developer) as other:
        for _ in range(2):
            await create_agent(developer)
            assert await reader.read_until("agent.created") == {"agent.created"}
            assert await other.read_until("agent.created") == {"agent.created"}


async def test_a_stream_is_of_one_tenant(server: Server, world: World, developer: Client) -> None:
    stranger = await world.user("agent_developer")
    async with _open(server, developer) as reader:
        await stranger.post("/api/v1/webhooks", _WEBHOOK)
        await create_agent(developer)
        assert await reader.read_until("agent.created") == {"agent.created"}


async def test_a_super_admin_is_told_of_the_chosen_tenant_or_of_all(
    server: Server, super_admin: Client, developer: Client
) -> None:
    async with _open(server, super_admin) as reader:
        await create_agent(developer)
        assert "agent.created" in await reader.read_until("agent.created")


async def test_only_readers_of_the_log_are_told(
    server: Server, world: World, anonymous: Client
) -> None:
    for caller, status, code in (
        (anonymous, 401, "unauthorized"),
        (await world.user("viewer"), 403, "forbidden"),
    ):
        async with open_events(server, caller, _PATH) as answer:
            refused(answer, status, code)


async def test_a_user_has_a_limited_number_of_streams(server: Server, developer: Client) -> None:
    async with AsyncExitStack() as streams:
        for _ in range(MAX_STREAMS_PER_USER):
            await streams.enter_async_context(_open(server, developer))
        async with open_events(server, developer, _PATH) as answer:
            refused(answer, 429, "rate_limited")
            assert answer.headers["retry-after"] == "5"

    async def is_open_again() -> bool:
        async with open_events(server, developer, _PATH) as answer:
            return answer.status_code == 200

    await wait_until(is_open_again)


async def test_a_stream_does_not_keep_a_server_that_stops(
    stores: Stores, developer: Client
) -> None:
    server = Server(stores.settings)
    server.wait()
    async with _open(server, developer) as reader:
        # Fails when the server is still there after the time.
        await asyncio.to_thread(server.close, 5)
        with pytest.raises(EOFError):
            await reader.read()


async def test_a_stream_ends_with_its_session(
    services: Services, developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "CHECK_SECONDS", 0.02)
    ids = (developer.user_id, developer.tenant_id, "agent_developer", developer.session_id)
    async with aclosing(live.stream(services, Principal(*ids, frozenset()))) as types:
        assert await anext(types) == []
        await developer.post("/auth/logout")
        async with asyncio.timeout(SECONDS):
            told = [name async for names in types for name in names]
    # What was recorded before the end is told, or not.
    assert set(told) <= {"system.user.signed_out"}


async def test_the_log_is_read_only_while_somebody_listens(
    services: Services, developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_READ_SECONDS", 0.02)
    events = LiveEvents(services.db)
    async with events.listen(developer.tenant_id, developer.user_id) as listener:
        await create_agent(developer)
        assert await listener.take(SECONDS) == ["agent.created"]
        assert events.is_reading

    async def has_ended() -> bool:
        return not events.is_reading

    await wait_until(has_ended)


async def test_an_unavailable_database_is_no_news(
    services: Services, developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_READ_SECONDS", 0.02)
    events, read = LiveEvents(services.db), queries.read_newest
    failures = 0

    async def fail_once(tx: Tx) -> dict[str, Figures]:
        nonlocal failures
        if not failures:
            failures += 1
            raise OSError("the connection was lost")
        return await read(tx)

    async with events.listen(developer.tenant_id, developer.user_id) as listener:
        monkeypatch.setattr(queries, "read_newest", fail_once)
        await create_agent(developer)
        assert await listener.take(SECONDS) == ["agent.created"]
    assert failures == 1
    await events.close()
