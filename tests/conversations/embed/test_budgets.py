"""The daily budgets of embed keys: messages and tokens."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import wraps
from typing import Any

import asyncpg
import httpx
import pytest

from app.domain.conversations.embed import queries
from app.kit import clock
from tests.assertions import wait_until
from tests.conversations.embed.factories import list_embed_keys, revoke_key
from tests.conversations.embed.sites import ORIGIN, Latch, Site, connect, error_of
from tests.conversations.embed.visits import call, change_key, create_shop, visit
from tests.database import fetch_rows, run_sql
from tests.model_server import Reply
from tests.scripted_agents import Talker
from tests.server import Server

# What the scripted model reports for each request.
TOKENS = 18
REFUSED = (429, "daily_limit_reached")


async def _complete(site: Site) -> httpx.Response:
    """Asks over the OpenAI-compatible endpoint."""
    body = {"model": site.talk.agent_id, "messages": [{"role": "user", "content": "Hi"}]}
    caller = site.talk.world.anonymous()
    return await caller.post("/v1/chat/completions", body, headers=site.headers(ORIGIN))


async def _read_usage(site: Site) -> tuple[int, int]:
    """Returns the messages and tokens of today."""
    keys = {key["id"]: key for key in await list_embed_keys(site.talk.client)}
    key = keys[site.key["id"]]
    return key["messages_today"], key["tokens_today"]


# Messages


async def test_the_messages_of_a_day_are_limited(talk: Talker) -> None:
    site = await create_shop(talk, max_messages_per_day=3)
    visitor = await visit(site)
    assert (await visitor.call("POST chat")).status_code == 200
    assert (await visitor.call("POST chat/stream")).status_code == 200
    assert (await _complete(site)).status_code == 200
    for answer in (
        await visitor.call("POST chat"),
        await visitor.call("POST chat/stream"),
        await call(site, "POST chat", site.api_key),
        await _complete(site),
    ):
        assert error_of(answer) == REFUSED
        assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert len(talk.asked) == 3
    # Those that were refused are not counted.
    assert await _read_usage(site) == (3, 3 * TOKENS)


async def test_a_refusal_says_when_the_next_day_begins(talk: Talker) -> None:
    site = await create_shop(talk, max_messages_per_day=1)
    await site.say()
    with clock.frozen(datetime(2030, 1, 1, 23, 59, 30, tzinfo=UTC)):
        answer = await site.ask(origin=ORIGIN)
    assert error_of(answer) == REFUSED
    assert answer.headers["retry-after"] == "30"
    assert "Retry-After" in answer.headers["access-control-expose-headers"]
    error = answer.json()["error"]
    assert error["details"] == {"retry_after": 30}
    assert "tomorrow" in error["message"]


async def test_sessions_are_opened_and_read_beyond_the_budget(talk: Talker) -> None:
    site = await create_shop(talk, max_messages_per_day=1)
    visitor = await visit(site)
    await visitor.say("Hi")
    assert (await visitor.renew()).status_code == 200
    assert len((await visitor.load())["messages"]) == 2
    assert await _read_usage(site) == (1, TOKENS)


async def test_requests_at_the_same_time_do_not_exceed_the_budget(talk: Talker) -> None:
    site = await create_shop(talk, max_messages_per_day=3)
    answers = await asyncio.gather(*(site.ask(session_id=f"s{n}") for n in range(10)))
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [429] * 7
    assert len(talk.asked) == 3
    assert await _read_usage(site) == (3, 3 * TOKENS)


async def test_requests_that_are_refused_for_another_reason_are_not_counted(talk: Talker) -> None:
    site = await create_shop(talk, "shop.example.com", max_messages_per_day=1)
    wrong = [
        await site.ask(origin="https://evil.example.net"),
        await site.ask(origin=ORIGIN, session_id=""),
        await site.ask(origin=ORIGIN, session_id="usr_" + "a" * 32),
        await call(site, "POST chat/tts", site.api_key),
    ]
    assert [answer.status_code for answer in wrong] == [403, 422, 401, 403]
    assert await _read_usage(site) == (0, 0)


async def test_a_message_to_a_busy_session_is_not_counted(talk: Talker) -> None:
    """A page tries again until the last turn is over."""
    site = await create_shop(talk, max_messages_per_day=2)
    latch = Latch()
    talk.script(Reply(hold=latch), Reply())
    turn = asyncio.create_task(site.say())
    try:
        await asyncio.wait_for(latch.reached.wait(), 10)
        for route in ("POST chat", "POST chat/stream"):
            answer = await call(site, route, site.api_key, session_id=site.session)
            assert error_of(answer) == (409, "conversation_busy")
        assert (await _read_usage(site))[0] == 1
    finally:
        latch.open()
    await turn
    await site.say()
    assert error_of(await site.ask()) == REFUSED


# Tokens


async def test_the_turn_that_uses_up_the_tokens_is_the_last_one(talk: Talker) -> None:
    site = await create_shop(talk, max_tokens_per_day=TOKENS + 1)
    assert (await site.ask()).status_code == 200
    assert (await site.ask()).status_code == 200
    for answer in (await site.ask(), await _complete(site)):
        assert error_of(answer) == REFUSED
    assert await _read_usage(site) == (2, 2 * TOKENS)


async def test_the_tokens_of_sub_agents_count(talk: Talker) -> None:
    site = await create_shop(talk, max_tokens_per_day=1000)
    helper = await talk.with_helper()
    helper.script(Reply(usage=(100, 20)))
    talk.script(Reply(texts=[], calls=[("delegate_to_helper", {"task": "Help"})]), Reply())
    await site.say()
    assert await _read_usage(site) == (1, 2 * TOKENS + 120)


async def test_a_turn_that_fails_counts_what_it_used(talk: Talker) -> None:
    site = await create_shop(talk, max_tokens_per_day=1000)
    talk.script(Reply(texts=["Half", " lost"], error_after=1), Reply(status=400))
    await call(site, "POST chat/stream", site.api_key)
    messages, tokens = await _read_usage(site)
    assert messages == 1
    assert tokens > 0
    # The model refused this one.
    await call(site, "POST chat/stream", site.api_key)
    assert await _read_usage(site) == (2, tokens)


async def test_a_stream_that_the_visitor_leaves_counts_what_it_used(
    server: Server, talk: Talker
) -> None:
    site = await create_shop(talk, max_tokens_per_day=1)
    latch, received = Latch(first=1), ""
    talk.script(Reply(texts=["Half", " lost"], hold=latch))
    visitor = await visit(site)
    body = {"session_id": visitor.session_id, "message": "Hi"}
    headers = {"authorization": f"Bearer {visitor.token}", "origin": ORIGIN}
    try:
        async with (
            connect(server) as client,
            client.stream("POST", f"{site.path}/chat/stream", json=body, headers=headers) as answer,
        ):
            async for text in answer.aiter_text():
                received += text
                if "Half" in received:
                    break

        async def is_counted() -> bool:
            return (await _read_usage(site))[1] > 0

        await wait_until(is_counted)
    finally:
        latch.open()
    assert error_of(await site.ask()) == REFUSED


async def test_the_tokens_of_a_caller_who_leaves_at_the_end_are_counted_once(
    talk: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = await create_shop(talk, max_tokens_per_day=1000)
    add_tokens, is_added, may_return = queries.add_tokens, asyncio.Event(), asyncio.Event()

    async def add_and_wait(*args: Any) -> None:
        await add_tokens(*args)
        is_added.set()
        await may_return.wait()

    monkeypatch.setattr(queries, "add_tokens", add_and_wait)
    turn = asyncio.create_task(site.ask())
    await asyncio.wait_for(is_added.wait(), 10)
    turn.cancel()
    may_return.set()
    await asyncio.wait([turn])
    assert await _read_usage(site) == (1, TOKENS)
    # What was answered is stored.
    sql = "SELECT id FROM conversation_entries WHERE tenant_id = $1 AND type = 'message'"
    assert len(await fetch_rows(talk.world.services, sql, talk.client.tenant_id)) == 2


# Days and changes


async def test_the_next_day_is_free(talk: Talker) -> None:
    site = await create_shop(talk, max_messages_per_day=1, max_tokens_per_day=1)
    await site.say()
    assert error_of(await site.ask()) == REFUSED
    sql = "UPDATE embed_key_usage SET day = day - 1 WHERE embed_key_id = $1"
    await run_sql(talk.world.services, sql, site.key["id"])
    assert await _read_usage(site) == (0, 0)
    await site.say()
    assert await _read_usage(site) == (1, TOKENS)
    sql = """
        SELECT day = (now() AT TIME ZONE 'utc')::date AS is_today, messages
        FROM embed_key_usage WHERE embed_key_id = $1 ORDER BY day
    """
    rows = await fetch_rows(talk.world.services, sql, site.key["id"])
    assert rows == [{"is_today": False, "messages": 1}, {"is_today": True, "messages": 1}]


async def test_a_changed_limit_holds_at_once(talk: Talker) -> None:
    site = await create_shop(talk, max_messages_per_day=1)
    await site.say()
    assert error_of(await site.ask()) == REFUSED
    await change_key(site, max_messages_per_day=2)
    await site.say()
    assert error_of(await site.ask()) == REFUSED
    await change_key(site, max_messages_per_day=None)
    await site.say()
    # Without a limit, nothing is counted.
    assert await _read_usage(site) == (2, 2 * TOKENS)


async def test_keys_have_budgets_of_their_own(talk: Talker) -> None:
    first, second = [await create_shop(talk, max_messages_per_day=1) for _ in range(2)]
    await first.say()
    assert error_of(await first.ask()) == REFUSED
    await second.say()


async def test_the_usage_of_a_key_is_deleted_with_it(talk: Talker) -> None:
    site = await create_shop(talk, max_messages_per_day=1)
    await site.say()
    await revoke_key(talk.client, site.key["id"])
    sql = "SELECT day FROM embed_key_usage WHERE embed_key_id = $1"
    assert await fetch_rows(talk.world.services, sql, site.key["id"]) == []


# What it costs

_recorded: ContextVar[list[str] | None] = ContextVar("recorded", default=None)


@contextmanager
def _record_statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    def record(method: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
        @wraps(method)
        async def run(connection: object, sql: str, *args: object, **options: object) -> object:
            if (statements := _recorded.get()) is not None:
                statements.append(sql)
            return await method(connection, sql, *args, **options)

        return run

    with monkeypatch.context() as patch:
        for name in ("fetch", "fetchrow", "fetchval", "execute", "executemany"):
            patch.setattr(asyncpg.Connection, name, record(getattr(asyncpg.Connection, name)))
        statements: list[str] = []
        token = _recorded.set(statements)
        yield statements
        _recorded.reset(token)


async def test_a_turn_has_no_more_statements_for_tokens_and_two_for_a_budget(
    talk: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    free, limited = await create_shop(talk), await create_shop(talk, max_messages_per_day=100)
    counts = []
    for site in (free, limited):
        visitor = await visit(site)
        # The first use of a key is stored, and the first message creates the conversation.
        await visitor.say("Hi")
        await site.say("Hi")
        with _record_statements(monkeypatch) as of_key:
            await site.say("Hi")
        with _record_statements(monkeypatch) as of_token:
            await visitor.say("Hi")
        assert len(of_token) == len(of_key)
        counts.append(len(of_key))
        assert any("embed_key_usage" in sql for sql in of_key) == (site is limited)
    assert counts[1] == counts[0] + 2
