"""Synchronous chat: concurrent turns, idempotency keys and statements."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import httpx
import pytest

from app.domain.conversations.chat import turn
from app.services import Services
from tests.assertions import refused, until
from tests.conversations.chat.conversation_helpers import (
    count_conversations,
    has_asked,
    list_messages,
    send_chat,
)
from tests.conversations.chat.database import execute, fetch_value, record_statements
from tests.conversations.chat.stream_helpers import connect
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import Talker, talker
from tests.server import Server
from tests.world import World


@asynccontextmanager
async def _pause_turn(talk: Talker, request: Awaitable[httpx.Response]) -> AsyncIterator[None]:
    """Sends a chat request, and pauses its model while the block runs; the turn must succeed."""
    requests_before, hold = len(talk.asked), asyncio.Event()
    talk.script(Reply(hold=hold), Reply())
    turn = asyncio.ensure_future(request)
    try:
        await until(lambda: len(talk.asked) > requests_before)
        yield
    finally:
        hold.set()
        answer = await turn
    assert answer.status_code == 200, answer.text


async def test_a_second_turn_is_refused_while_another_process_answers(
    talk: Talker, server: Server
) -> None:
    conversation = {"conversation_id": (await talk.say("One"))["conversation_id"]}
    path, body = f"{talk.path}/chat", {"message": "Two", **conversation}
    async with connect(server, talk.client) as remote:
        async with _pause_turn(talk, remote.post(path, json=body)):
            for route in ("chat", "chat/stream", "chat/async"):
                answer = await talk.client.post(f"{talk.path}/{route}", body)
                refused(answer, 409, "conversation_busy")
        async with _pause_turn(talk, talk.client.post(path, body)):
            refused(await remote.post(path, json=body), 409, "conversation_busy")
    assert len(await list_messages(talk, conversation["conversation_id"])) == 6


async def test_one_of_many_concurrent_turns_is_answered(talk: Talker, server: Server) -> None:
    conversation = {"conversation_id": (await talk.say("One"))["conversation_id"]}
    body, hold = {"message": "Two", **conversation}, asyncio.Event()
    talk.script(Reply(hold=hold))
    async with connect(server, talk.client) as remote:
        path = f"{talk.path}/chat"
        turns = [
            asyncio.ensure_future(request)
            for _ in range(5)
            for request in (remote.post(path, json=body), talk.client.post(path, body))
        ]
        await until(lambda: sum(turn.done() for turn in turns) == 9)
        hold.set()
        answers = await asyncio.gather(*turns)
    assert Counter(answer.status_code for answer in answers) == {200: 1, 409: 9}
    assert len(talk.asked) == 2
    assert len(await list_messages(talk, conversation["conversation_id"])) == 4


async def test_a_busy_conversation_does_not_block_others(talk: Talker) -> None:
    conversation = {"conversation_id": (await talk.say("One"))["conversation_id"]}
    async with _pause_turn(talk, send_chat(talk.client, talk, "Two", **conversation)):
        assert (await send_chat(talk.client, talk, "Another")).status_code == 200


async def test_a_conversation_whose_process_died_is_free_once_its_lease_is_over(
    talk: Talker, services: Services
) -> None:
    conversation = {"conversation_id": (await talk.say("One"))["conversation_id"]}
    lease = (
        "UPDATE conversations SET turn_holder = 'gone',"
        " turn_until = now() + $2 * interval '1 second' WHERE id = $1"
    )
    await execute(services, lease, conversation["conversation_id"], 60)
    refused(await send_chat(talk.client, talk, **conversation), 409, "conversation_busy")
    await execute(services, lease, conversation["conversation_id"], -1)
    assert (await send_chat(talk.client, talk, **conversation)).status_code == 200


async def test_the_lease_of_a_conversation_is_renewed_while_the_model_answers(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "_RENEW_SECONDS", 0.05)
    conversation = {"conversation_id": (await talk.say("One"))["conversation_id"]}
    query = ("SELECT turn_until FROM conversations WHERE id = $1", conversation["conversation_id"])
    async with _pause_turn(talk, send_chat(talk.client, talk, "Two", **conversation)):
        lease_ends = {await fetch_value(services, *query)}
        async with asyncio.timeout(10):
            while len(lease_ends) < 4:
                lease_ends.add(await fetch_value(services, *query))
                await asyncio.sleep(0.01)
        refused(
            await send_chat(talk.client, talk, "Three", **conversation), 409, "conversation_busy"
        )
    await talk.say("Three", **conversation)


async def test_a_turn_that_lost_its_conversation_stores_no_reply(
    talk: Talker, services: Services
) -> None:
    first = await talk.say("One")
    conversation, hold = {"conversation_id": first["conversation_id"]}, asyncio.Event()
    talk.script(Reply(texts=["Late"], hold=hold), Reply(texts=["In time"]))
    late_turn = asyncio.create_task(send_chat(talk.client, talk, "Two", **conversation))
    await until(lambda: len(talk.asked) == 2)
    await execute(
        services,
        "UPDATE conversations SET turn_until = now() - interval '1 second' WHERE id = $1",
        first["conversation_id"],
    )
    await talk.say("Three", **conversation)
    hold.set()
    refused(await late_turn, 404, "conversation_not_found")
    messages = await list_messages(talk, first["conversation_id"])
    assert [item["content"] for item in messages[2:]] == ["Three", "In time"]


async def test_the_same_idempotency_key_gives_the_same_reply(talk: Talker) -> None:
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


async def test_the_same_idempotency_key_with_another_body_is_refused(talk: Talker) -> None:
    headers = {"idempotency-key": "a"}
    await talk.client.post(f"{talk.path}/chat", {"message": "Hi"}, headers=headers)
    answer = await talk.client.post(f"{talk.path}/chat", {"message": "Ho"}, headers=headers)
    refused(answer, 422, "idempotency_mismatch")
    assert len(talk.asked) == 1


async def test_a_failed_answer_is_not_replayed(talk: Talker) -> None:
    headers, body = {"idempotency-key": "a"}, {"message": "Hi"}
    talk.script(Reply(status=400), Reply())
    answer = await talk.client.post(f"{talk.path}/chat", body, headers=headers)
    refused(answer, 400, "provider_rejected")
    answer = await talk.client.post(f"{talk.path}/chat", body, headers=headers)
    assert answer.status_code == 200
    assert len(talk.asked) == 2


async def test_a_refusal_is_not_replayed(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for conversation_id in ("cnv_none", 5):
        with subtests.test(conversation_id=conversation_id):
            talk = await talker(world, models)
            headers = {"idempotency-key": "a"}
            body = {"message": "Hi", "conversation_id": conversation_id}
            answer = await talk.client.post(f"{talk.path}/chat", body, headers=headers)
            assert answer.status_code in {404, 422}
            async with asyncio.timeout(5):
                # The key is deleted a moment after the answer.
                answer = await talk.client.post(
                    f"{talk.path}/chat", {"message": "Hi"}, headers=headers
                )
                while answer.status_code == 422:
                    answer = await talk.client.post(
                        f"{talk.path}/chat", {"message": "Hi"}, headers=headers
                    )
            assert answer.status_code == 200


async def test_a_concurrent_request_with_the_same_key_waits_for_the_first(
    talk: Talker, server: Server
) -> None:
    headers, body, hold = {"idempotency-key": "a"}, {"message": "Hi"}, asyncio.Event()
    talk.script(Reply(hold=hold))
    async with connect(server, talk.client) as remote:
        path = f"{talk.path}/chat"
        first = asyncio.create_task(remote.post(path, json=body, headers=headers))
        await until(lambda: len(talk.asked) == 1)
        second = asyncio.create_task(talk.client.post(path, body, headers=headers))
        # Another body is refused without a wait.
        other = await talk.client.post(path, {"message": "Ho"}, headers=headers)
        refused(other, 422, "idempotency_mismatch")
        assert not second.done()
        hold.set()
        answers = await asyncio.gather(first, second)
    assert answers[0].status_code == answers[1].status_code == 200
    assert answers[0].json() == answers[1].json()
    assert len(talk.asked) == 1


async def test_a_client_that_lost_its_connection_gets_the_reply_with_the_same_key(
    talk: Talker, server: Server
) -> None:
    headers, body, hold = {"idempotency-key": "a"}, {"message": "Hi"}, asyncio.Event()
    talk.script(Reply(texts=["Once"], hold=hold), Reply(texts=["Twice"]))
    path = f"{talk.path}/chat"
    async with connect(server, talk.client) as lost_client:
        first = asyncio.create_task(lost_client.post(path, json=body, headers=headers))
        await until(lambda: len(talk.asked) == 1)
        first.cancel()
        await asyncio.wait([first])
    second = asyncio.create_task(talk.client.post(path, body, headers=headers))
    hold.set()
    answer = await second
    assert answer.status_code == 200
    assert answer.json()["message"]["content"] == "Once"
    assert len(talk.asked) == 1


async def test_no_connection_is_held_while_a_request_waits_for_its_key(talk: Talker) -> None:
    """Forty requests wait for one key, the pool has twenty connections; another one succeeds."""
    headers, body, hold = {"idempotency-key": "a"}, {"message": "Hi"}, asyncio.Event()
    talk.script(Reply(hold=hold))
    path = f"{talk.path}/chat"
    requests = [
        asyncio.create_task(talk.client.post(path, body, headers=headers)) for _ in range(40)
    ]
    await until(lambda: len(talk.asked) == 1)
    async with asyncio.timeout(5):
        assert (await talk.client.get(talk.path)).status_code == 200
    hold.set()
    answers = await asyncio.gather(*requests)
    assert len({answer.content for answer in answers}) == 1
    assert len(talk.asked) == 1


async def test_an_idempotency_key_belongs_to_its_user(talk: Talker, world: World) -> None:
    other = await world.user("agent_user", talk.client.tenant_id)
    headers, body = {"idempotency-key": "a"}, {"message": "Hi"}
    first = await talk.client.post(f"{talk.path}/chat", body, headers=headers)
    second = await other.post(f"{talk.path}/chat", body, headers=headers)
    assert first.json()["conversation_id"] != second.json()["conversation_id"]
    assert len(talk.asked) == 2


async def test_an_empty_or_too_long_idempotency_key_is_refused(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for key in ("", "x" * 256):
        with subtests.test(key=key):
            talk = await talker(world, models)
            headers = {"idempotency-key": key}
            answer = await talk.client.post(f"{talk.path}/chat", {"message": "Hi"}, headers=headers)
            error = refused(answer, 422, "validation_error")
            assert list(error["details"]) == ["Idempotency-Key"]
            assert talk.asked == []


async def test_a_turn_runs_three_statements_before_the_model_and_two_after_at_most(
    world: World,
    models: ModelServer,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    for turns in (0, 1, 5):
        with subtests.test(turns=turns):
            talk = await talker(world, models)
            # The first turn looks up the session and prepares statements.
            await talk.say("Hello")
            conversation: dict[str, Any] = {}
            for number in range(turns):
                conversation["conversation_id"] = (await talk.say(f"{number}", **conversation))[
                    "conversation_id"
                ]
            requests_before, hold = len(talk.asked), asyncio.Event()
            talk.script(Reply(hold=hold))
            with record_statements(services, monkeypatch) as statements:
                task = asyncio.create_task(talk.say("Counted", **conversation))
                await until(partial(has_asked, talk, requests_before))
                before = list(statements)
                hold.set()
                await task
            assert 1 <= len(before) <= 3, before
            after = statements[len(before) :]
            assert 1 <= len(after) <= 2, after


async def test_a_longer_list_of_messages_needs_no_more_statements(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation: dict[str, Any] = {}
    counts = []
    for turns in (1, 6):
        for _ in range(turns):
            conversation["conversation_id"] = (await talk.say("Hi", **conversation))[
                "conversation_id"
            ]
        with record_statements(services, monkeypatch) as statements:
            await list_messages(talk, conversation["conversation_id"])
        # The login is checked in Postgres too when Redis is slow.
        counts.append(sum("conversation" in statement for statement in statements))
    assert 1 <= counts[0] == counts[1]


async def test_no_transaction_is_open_while_the_model_answers(
    talk: Talker, services: Services
) -> None:
    first = await talk.say("One")
    body = {"message": "Two", "conversation_id": first["conversation_id"]}
    request = talk.client.post(f"{talk.path}/chat", body, headers={"idempotency-key": "a"})
    open_now = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND state LIKE 'idle in transaction%'"
    )
    async with _pause_turn(talk, request):
        assert await fetch_value(services, open_now) == 0


async def test_an_empty_conversation_id_is_not_found(talk: Talker) -> None:
    answer = await send_chat(talk.client, talk, conversation_id="")
    refused(answer, 404, "conversation_not_found")
    assert "cnv_" not in answer.text


async def test_an_answer_with_too_many_tool_calls_is_refused(
    talk: Talker, services: Services
) -> None:
    """Each call is stored as a row, whether it runs or not."""
    many = b",".join([b"{}"] * 20_000)
    raw = b'{"choices":[{"message":{"tool_calls":[' + many + b']},"finish_reason":"stop"}]}'
    talk.script(Reply(raw=raw))
    error = refused(await send_chat(talk.client, talk), 502, "provider_error")
    assert "at once" in error["message"]
    sql = "SELECT count(*) FROM conversation_entries WHERE agent_id = $1"
    # The question, the failed answer, its usage, and what the model saw.
    assert await fetch_value(services, sql, talk.agent_id) == 4
