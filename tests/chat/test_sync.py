"""Synchronous chat: turns at the same time, repeated requests, and round trips."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import asyncpg
import httpx
import pytest
from sqlalchemy import event

from app.domain.chat import turn
from app.services import Services
from db.session import ALL_TENANTS
from tests.asking import refused, until
from tests.chat.sync_helpers import count_conversations, list_messages, read_value, send_chat
from tests.model_server import Reply
from tests.server import Server
from tests.talk import Talker
from tests.world import Client, World


@asynccontextmanager
async def while_speaking(talk: Talker, first: Awaitable[httpx.Response]) -> AsyncIterator[None]:
    """While the model is being asked on behalf of `first`, which must succeed in the end."""
    before, hold = len(talk.asked), asyncio.Event()
    talk.script(Reply(hold=hold), Reply())
    asking = asyncio.ensure_future(first)
    try:
        await until(lambda: len(talk.asked) > before)
        yield
    finally:
        hold.set()
        answer = await asking
    assert answer.status_code == 200, answer.text


def remote_client(server: Server, who: Client) -> httpx.AsyncClient:
    headers = {"authorization": f"Bearer {who.token}"}
    return httpx.AsyncClient(base_url=server.url, headers=headers, timeout=30)


async def test_a_second_turn_is_refused_while_another_process_answers(
    talk: Talker, server: Server
) -> None:
    again = {"conversation_id": (await talk.say("One"))["conversation_id"]}
    path, body = f"{talk.path}/chat", {"message": "Two", **again}
    async with remote_client(server, talk.client) as remote:
        async with while_speaking(talk, remote.post(path, json=body)):
            for way in ("chat", "chat/stream", "chat/async"):
                answer = await talk.client.post(f"{talk.path}/{way}", body)
                refused(answer, 409, "conversation_busy")
        async with while_speaking(talk, talk.client.post(path, body)):
            refused(await remote.post(path, json=body), 409, "conversation_busy")
    assert len(await list_messages(talk, again["conversation_id"])) == 6


async def test_of_many_turns_at_once_exactly_one_is_answered(talk: Talker, server: Server) -> None:
    again = {"conversation_id": (await talk.say("One"))["conversation_id"]}
    body, hold = {"message": "Two", **again}, asyncio.Event()
    talk.script(Reply(hold=hold))
    async with remote_client(server, talk.client) as remote:
        path = f"{talk.path}/chat"
        asking = [
            asyncio.ensure_future(sent)
            for _ in range(5)
            for sent in (remote.post(path, json=body), talk.client.post(path, body))
        ]
        await until(lambda: sum(task.done() for task in asking) == 9)
        hold.set()
        answers = await asyncio.gather(*asking)
    assert Counter(answer.status_code for answer in answers) == {200: 1, 409: 9}
    assert len(talk.asked) == 2
    assert len(await list_messages(talk, again["conversation_id"])) == 4


async def test_other_conversations_of_the_agent_are_not_held_up(talk: Talker) -> None:
    again = {"conversation_id": (await talk.say("One"))["conversation_id"]}
    async with while_speaking(talk, send_chat(talk.client, talk, "Two", **again)):
        assert (await send_chat(talk.client, talk, "Another")).status_code == 200


async def test_a_conversation_whose_process_died_is_free_once_its_lease_is_over(
    talk: Talker, services: Services
) -> None:
    again = {"conversation_id": (await talk.say("One"))["conversation_id"]}
    hold = "UPDATE conversations SET turn_holder = 'gone', turn_until = now() + $2 WHERE id = $1"
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            hold.replace("$2", "interval '1 minute'"), again["conversation_id"]
        )
    refused(await send_chat(talk.client, talk, **again), 409, "conversation_busy")
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            hold.replace("$2", "interval '-1 second'"), again["conversation_id"]
        )
    assert (await send_chat(talk.client, talk, **again)).status_code == 200


async def test_an_answer_that_takes_long_keeps_its_conversation(
    talk: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "LEASE_SECONDS", 0.4)
    monkeypatch.setattr(turn, "_RENEW_SECONDS", 0.1)
    again = {"conversation_id": (await talk.say("One"))["conversation_id"]}
    async with while_speaking(talk, send_chat(talk.client, talk, "Two", **again)):
        until = time.monotonic() + 1.2
        while time.monotonic() < until:
            refused(await send_chat(talk.client, talk, "Three", **again), 409, "conversation_busy")
            await asyncio.sleep(0.05)
    await talk.say("Three", **again)


async def test_an_answer_whose_conversation_was_taken_over_is_not_written_into_it(
    talk: Talker, services: Services
) -> None:
    first = await talk.say("One")
    again, hold = {"conversation_id": first["conversation_id"]}, asyncio.Event()
    talk.script(Reply(texts=["From the frozen"], hold=hold), Reply(texts=["From the next"]))
    frozen = asyncio.create_task(send_chat(talk.client, talk, "Two", **again))
    await until(lambda: len(talk.asked) == 2)
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            "UPDATE conversations SET turn_until = now() - interval '1 second' WHERE id = $1",
            first["conversation_id"],
        )
    await talk.say("Three", **again)
    hold.set()
    assert 400 <= (await frozen).status_code < 500
    kept = await list_messages(talk, first["conversation_id"])
    assert [item["content"] for item in kept[2:]] == ["Three", "From the next"]


async def test_an_agent_deleted_while_it_answers_is_told_as_not_found(talk: Talker) -> None:
    hold = asyncio.Event()
    talk.script(Reply(hold=hold))
    asking = asyncio.create_task(send_chat(talk.client, talk))
    await until(lambda: len(talk.asked) == 1)
    assert (await talk.client.delete(talk.path)).status_code == 204
    hold.set()
    refused(await asking, 404, "conversation_not_found")


async def test_the_same_key_gives_the_same_reply_for_one_question(talk: Talker) -> None:
    headers, body = {"idempotency-key": "a"}, {"message": "Hi"}
    first = await talk.client.post(f"{talk.path}/chat", body, headers=headers)
    second = await talk.client.post(f"{talk.path}/chat", body, headers=headers)
    assert first.status_code == second.status_code == 200
    assert second.content == first.content
    assert second.headers["content-type"] == first.headers["content-type"]
    assert "idempotent-replayed" not in first.headers
    assert second.headers["idempotent-replayed"] == "true"
    assert len(talk.asked) == 1
    assert await count_conversations(talk) == 1


async def test_the_same_key_with_another_body_is_refused(talk: Talker) -> None:
    headers = {"idempotency-key": "a"}
    await talk.client.post(f"{talk.path}/chat", {"message": "Hi"}, headers=headers)
    answer = await talk.client.post(f"{talk.path}/chat", {"message": "Ho"}, headers=headers)
    refused(answer, 422, "idempotency_mismatch")
    assert len(talk.asked) == 1


async def test_a_failed_answer_is_not_given_again(talk: Talker) -> None:
    headers, body = {"idempotency-key": "a"}, {"message": "Hi"}
    talk.script(Reply(status=400), Reply())
    answer = await talk.client.post(f"{talk.path}/chat", body, headers=headers)
    refused(answer, 502, "provider_error")
    answer = await talk.client.post(f"{talk.path}/chat", body, headers=headers)
    assert answer.status_code == 200
    assert len(talk.asked) == 2


@pytest.mark.parametrize("conversation_id", ["cnv_none", 5])
async def test_a_refusal_is_not_given_again(talk: Talker, conversation_id: Any) -> None:
    headers = {"idempotency-key": "a"}
    body = {"message": "Hi", "conversation_id": conversation_id}
    answer = await talk.client.post(f"{talk.path}/chat", body, headers=headers)
    assert answer.status_code in {404, 422}
    async with asyncio.timeout(5):
        # The key is forgotten a moment after the answer.
        answer = await talk.client.post(f"{talk.path}/chat", {"message": "Hi"}, headers=headers)
        while answer.status_code == 422:
            answer = await talk.client.post(f"{talk.path}/chat", {"message": "Hi"}, headers=headers)
    assert answer.status_code == 200


async def test_the_same_key_at_the_same_time_waits_for_the_first(
    talk: Talker, server: Server
) -> None:
    headers, body, hold = {"idempotency-key": "a"}, {"message": "Hi"}, asyncio.Event()
    talk.script(Reply(hold=hold))
    async with remote_client(server, talk.client) as remote:
        path = f"{talk.path}/chat"
        first = asyncio.create_task(remote.post(path, json=body, headers=headers))
        await until(lambda: len(talk.asked) == 1)
        second = asyncio.create_task(talk.client.post(path, body, headers=headers))
        # Another body need not wait to be refused.
        other = await talk.client.post(path, {"message": "Ho"}, headers=headers)
        refused(other, 422, "idempotency_mismatch")
        assert not second.done()
        hold.set()
        answers = await asyncio.gather(first, second)
    assert answers[0].status_code == answers[1].status_code == 200
    assert answers[0].json() == answers[1].json()
    assert len(talk.asked) == 1


async def test_who_lost_the_connection_gets_the_reply_by_asking_again_with_the_key(
    talk: Talker, server: Server
) -> None:
    headers, body, hold = {"idempotency-key": "a"}, {"message": "Hi"}, asyncio.Event()
    talk.script(Reply(texts=["Once"], hold=hold), Reply(texts=["Twice"]))
    path = f"{talk.path}/chat"
    async with remote_client(server, talk.client) as lost:
        asking = asyncio.create_task(lost.post(path, json=body, headers=headers))
        await until(lambda: len(talk.asked) == 1)
        asking.cancel()
        await asyncio.wait([asking])
    again = asyncio.create_task(talk.client.post(path, body, headers=headers))
    hold.set()
    answer = await again
    assert answer.status_code == 200
    assert answer.json()["message"]["content"] == "Once"
    assert len(talk.asked) == 1


async def test_no_connection_is_held_while_a_request_waits_for_its_key(talk: Talker) -> None:
    """More requests with one key than the pool has connections, and others still get through."""
    headers, body, hold = {"idempotency-key": "a"}, {"message": "Hi"}, asyncio.Event()
    talk.script(Reply(hold=hold))
    path = f"{talk.path}/chat"
    waiting = [
        asyncio.create_task(talk.client.post(path, body, headers=headers)) for _ in range(40)
    ]
    await until(lambda: len(talk.asked) == 1)
    async with asyncio.timeout(5):
        assert (await talk.client.get(talk.path)).status_code == 200
    hold.set()
    answers = await asyncio.gather(*waiting)
    assert len({answer.content for answer in answers}) == 1
    assert len(talk.asked) == 1


async def test_a_key_is_its_users_own(talk: Talker, world: World) -> None:
    other = await world.user("agent_user", talk.client.tenant_id)
    headers, body = {"idempotency-key": "a"}, {"message": "Hi"}
    first = await talk.client.post(f"{talk.path}/chat", body, headers=headers)
    second = await other.post(f"{talk.path}/chat", body, headers=headers)
    assert first.json()["conversation_id"] != second.json()["conversation_id"]
    assert len(talk.asked) == 2


@pytest.mark.parametrize("key", ["", "x" * 256])
async def test_a_key_of_no_or_too_many_characters_is_refused(talk: Talker, key: str) -> None:
    headers = {"idempotency-key": key}
    answer = await talk.client.post(f"{talk.path}/chat", {"message": "Hi"}, headers=headers)
    error = refused(answer, 422, "validation_error")
    assert list(error["details"]) == ["Idempotency-Key"]
    assert talk.asked == []


@contextmanager
def count_statements(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every statement that goes to Postgres from this process, BEGIN and COMMIT included."""
    statements: list[str] = []

    def counting(name: str) -> Any:
        original = getattr(asyncpg.Connection, name)

        async def call(self: Any, query: str, *args: Any, **more: Any) -> Any:
            statements.append(query)
            return await original(self, query, *args, **more)

        return call

    def by_orm(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    engine = services.db.engine.sync_engine
    event.listen(engine, "before_cursor_execute", by_orm)
    try:
        with monkeypatch.context() as patch:
            for name in ("fetch", "fetchrow", "fetchval", "execute", "executemany"):
                patch.setattr(asyncpg.Connection, name, counting(name))
            yield statements
    finally:
        event.remove(engine, "before_cursor_execute", by_orm)


@pytest.mark.parametrize("turns", [0, 1, 5])
async def test_a_turn_asks_the_database_thrice_before_the_model_and_at_most_twice_after(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    await talk.say("Warm up: the session is looked up and statements are prepared")
    again: dict[str, Any] = {}
    for number in range(turns):
        again["conversation_id"] = (await talk.say(f"{number}", **again))["conversation_id"]
    before, hold = len(talk.asked), asyncio.Event()
    talk.script(Reply(hold=hold))
    with count_statements(services, monkeypatch) as statements:
        asking = asyncio.create_task(talk.say("Counted", **again))
        await until(lambda: len(talk.asked) > before)
        until_asked = list(statements)
        hold.set()
        await asking
    assert 1 <= len(until_asked) <= 3, until_asked
    after = statements[len(until_asked) :]
    assert 1 <= len(after) <= 2, after


async def test_a_list_of_messages_costs_the_same_however_long_it_is(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    again: dict[str, Any] = {}
    counts = []
    for turns in (1, 6):
        for _ in range(turns):
            again["conversation_id"] = (await talk.say("Hi", **again))["conversation_id"]
        with count_statements(services, monkeypatch) as statements:
            await list_messages(talk, again["conversation_id"])
        counts.append(len(statements))
    assert 1 <= counts[0] == counts[1]


async def test_no_transaction_is_open_while_the_model_speaks(
    talk: Talker, services: Services
) -> None:
    first = await talk.say("One")
    body = {"message": "Two", "conversation_id": first["conversation_id"]}
    asking = talk.client.post(f"{talk.path}/chat", body, headers={"idempotency-key": "a"})
    open_now = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND state LIKE 'idle in transaction%'"
    )
    async with while_speaking(talk, asking):
        assert await read_value(services, open_now) == 0


async def test_an_empty_conversation_id_is_nobodys(talk: Talker) -> None:
    answer = await send_chat(talk.client, talk, conversation_id="")
    refused(answer, 404, "conversation_not_found")
    assert "cnv_" not in answer.text


async def test_a_model_that_calls_without_end_is_stopped(talk: Talker, services: Services) -> None:
    """Each call costs a row, whether it is run or not."""
    many = b",".join([b"{}"] * 20_000)
    raw = b'{"choices":[{"message":{"tool_calls":[' + many + b']},"finish_reason":"stop"}]}'
    talk.script(Reply(raw=raw))
    error = refused(await send_chat(talk.client, talk), 502, "provider_error")
    assert "at once" in error["message"]
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        count = "SELECT count(*) FROM conversation_entries WHERE agent_id = $1"
        assert await (await tx.raw()).fetchval(count, talk.agent_id) == 0
