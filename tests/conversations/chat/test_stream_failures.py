"""Streamed chat: failures within a stream, and clients that leave."""

import asyncio
from typing import Any

import pytest

from app.services import Services
from tests.assertions import refused, until
from tests.conversations.chat.conversation_helpers import list_messages
from tests.conversations.chat.database import fetch_rows, fetch_value
from tests.conversations.chat.delegation_scripts import attach_sub_agent
from tests.conversations.chat.stream_helpers import (
    SilentModel,
    conversation_of,
    create_silent_agent,
    encode_delta,
    open_stream,
    post_stream,
    stream_chat,
)
from tests.lengths import rounds
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import Talker, names_of, talker
from tests.server import Server
from tests.world import World

# The next keep-alive comment, after ten seconds, would reveal a disconnect as well.
DISCONNECT_SECONDS = 5.0


async def wait_for_messages(talk: Talker, conversation_id: str, count: int) -> list[dict[str, Any]]:
    """Returns the messages once there are so many; the web process stores them after the end."""
    async with asyncio.timeout(10):
        while len(messages := await list_messages(talk, conversation_id)) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return messages


async def wait_until_free(talk: Talker, conversation_id: str, services: Services) -> None:
    """Waits until the web process has released the conversation, and runs a turn in it."""
    busy = "SELECT turn_until IS NOT NULL FROM conversations WHERE id = $1"
    async with asyncio.timeout(10):
        while await fetch_value(services, busy, conversation_id):  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.01)
    talk.script(Reply(texts=["Free"]))
    reply = await talk.say("And now?", conversation_id=conversation_id)
    assert reply["message"]["content"] == "Free"


async def test_a_model_that_refuses_decides_the_status_of_the_stream(
    world: World, models: ModelServer, server: Server, services: Services, subtests: pytest.Subtests
) -> None:
    for status, reason, ours in (
        (400, "refused", (400, "provider_rejected")),
        (429, "rate_limited", (429, "rate_limited")),
        (503, "unavailable", (502, "provider_error")),
    ):
        with subtests.test(status=status, reason=reason):
            talk = await talker(world, models)
            talk.script(Reply(status=status, message="not today", headers={"Retry-After": "0"}))
            error = refused(await post_stream(server, talk, {"message": "Hi"}), *ours)
            assert "not today" in error["message"]
            assert error["details"]["reason"] == reason
            conversation_id = error["details"]["conversation_id"]
            question, failed = await list_messages(talk, conversation_id)
            assert (question["content"], question["status"]) == ("Hi", "complete")
            assert (failed["content"], failed["status"]) == ("", "failed")
            assert failed["error"] == {"code": error["code"], "message": error["message"]}
            await wait_until_free(talk, conversation_id, services)


async def test_a_conversation_whose_first_turn_failed_counts_once(
    talk: Talker, server: Server
) -> None:
    talk.script(Reply(status=400), Reply())
    answer = await post_stream(server, talk, {"message": "Hi"})
    conversation_id = answer.json()["error"]["details"]["conversation_id"]
    await talk.say("Again", conversation_id=conversation_id)
    stats = (await talk.client.get(f"{talk.path}/stats")).json()
    assert stats["total_messages"] == 4
    assert stats["total_conversations"] == 1
    assert stats["failed_turns"] == 1


async def test_the_text_before_a_failure_is_stored(
    world: World, models: ModelServer, server: Server, services: Services, subtests: pytest.Subtests
) -> None:
    for reply, reason in (
        (Reply(texts=["One ", "two ", "three"], drop_after=2), "broken"),
        (Reply(texts=["One ", "two ", "three"], error_after=2, message="I fell"), "refused"),
    ):
        with subtests.test(reply=reply, reason=reason):
            talk = await talker(world, models)
            talk.script(reply)
            events = await stream_chat(server, talk)
            assert names_of(events) == ["message_start", "content_delta", "error"]
            assert events[-1][1]["code"] == "provider_error"
            assert events[-1][1]["details"]["reason"] == reason
            messages = await list_messages(talk, conversation_of(events))
            assert [(item["role"], item["content"], item["status"]) for item in messages] == [
                ("user", "Hi", "complete"),
                ("assistant", "One two ", "failed"),
            ]
            # A partial answer is not retried.
            assert len(talk.asked) == 1
            await wait_until_free(talk, conversation_of(events), services)


async def test_a_partial_reply_is_part_of_the_history(talk: Talker, server: Server) -> None:
    talk.script(Reply(texts=["Half", "lost"], drop_after=1), Reply())
    conversation_id = conversation_of(await stream_chat(server, talk))
    await talk.say("Go on", conversation_id=conversation_id)
    assert [item["content"] for item in talk.asked[1]["messages"][1:]] == ["Hi", "Half", "Go on"]


async def list_usage(services: Services, talk: Talker) -> list[tuple[int, int, int]]:
    sql = "SELECT turns, prompt_tokens, completion_tokens FROM usage WHERE agent_id = $1"
    return [tuple(row) for row in await fetch_rows(services, sql, talk.agent_id)]


async def test_the_tokens_of_a_partial_reply_are_counted(
    talk: Talker, server: Server, services: Services
) -> None:
    talk.script(Reply(texts=["Half of it", "lost"], drop_after=1))
    await stream_chat(server, talk)
    [(turns, prompt_tokens, completion_tokens)] = await list_usage(services, talk)
    assert turns == 1
    assert prompt_tokens > 0
    assert completion_tokens > 0


async def test_tokens_are_counted_when_the_client_disconnects(
    talk: Talker, server: Server, services: Services
) -> None:
    talk.script(Reply(texts=["word "] * 1000, delay=0.02))
    conversation_id = await disconnect_after(server, talk, "content_delta")
    await wait_for_messages(talk, conversation_id, 2)
    [(turns, prompt_tokens, completion_tokens)] = await list_usage(services, talk)
    assert turns == 1
    assert prompt_tokens > 0
    assert completion_tokens > 0


async def disconnect_after(server: Server, talk: Talker, event_name: str, **more: Any) -> str:
    """Reads until the first event of that name and disconnects; returns the conversation's id."""
    async with open_stream(server, talk, **more) as events:
        name, data = await anext(events)
        conversation_id: str = data["conversation_id"]
        while name != event_name:
            name, data = await anext(events)
    return conversation_id


async def test_a_disconnect_ends_the_models_answer_and_stores_the_text_before_it(
    talk: Talker, server: Server, services: Services
) -> None:
    talk.script(Reply(texts=["word "] * 1000, delay=0.02))
    closed_before = talk.models.closed_early
    conversation_id = await disconnect_after(server, talk, "content_delta")
    await until(lambda: talk.models.closed_early > closed_before, DISCONNECT_SECONDS)
    messages = await wait_for_messages(talk, conversation_id, 2)
    assert [item["status"] for item in messages] == ["complete", "interrupted"]
    text = messages[1]["content"]
    assert text
    assert text == "word " * (len(text) // 5)
    assert len(text) < 5 * 200
    events = await talk.client.get(
        "/api/v1/event-log", params={"event_type": "agent.chat.message", "per_page": 1}
    )
    assert events.json()["data"][0]["data"]["status"] == "interrupted"
    await wait_until_free(talk, conversation_id, services)


async def test_a_disconnect_closes_the_connection_of_a_silent_model(
    talk: Talker, server: Server, silent_model: SilentModel, services: Services
) -> None:
    silent_model.response = encode_delta("Well, ")
    agent = await create_silent_agent(talk, silent_model)
    conversation_id = await disconnect_after(server, agent, "content_delta")
    assert silent_model.requests == 1
    await until(lambda: silent_model.connections == 0, DISCONNECT_SECONDS)
    messages = await wait_for_messages(agent, conversation_id, 2)
    assert (messages[1]["content"], messages[1]["status"]) == ("Well, ", "interrupted")


async def test_a_disconnect_before_the_first_text_stores_nothing(
    talk: Talker, server: Server, silent_model: SilentModel, services: Services
) -> None:
    silent_model.response = b": a moment\n\n"
    agent = await create_silent_agent(talk, silent_model)
    async with open_stream(server, agent) as events:
        conversation_id = (await anext(events))[1]["conversation_id"]
        await until(lambda: silent_model.connections == 1)
    await until(lambda: silent_model.connections == 0, DISCONNECT_SECONDS)
    assert silent_model.requests == 1
    await agent.client.put(agent.path, {"primary_model": f"scripted/{talk.model}"})
    agent.model = talk.model
    await wait_until_free(agent, conversation_id, services)
    # Only the turn of `wait_until_free` is stored.
    assert len(await list_messages(agent, conversation_id)) == 2


async def test_a_disconnect_ends_a_delegated_task(
    talk: Talker, server: Server, silent_model: SilentModel, services: Services
) -> None:
    helper = await create_silent_agent(talk, silent_model, name="Helper")
    await attach_sub_agent(talk, helper)
    talk.script(Reply(texts=["Asking."], calls=[("delegate_to_helper", {"task": "x"})]))
    async with open_stream(server, talk) as events:
        conversation_id = (await anext(events))[1]["conversation_id"]
        await until(lambda: silent_model.connections == 1)
    await until(lambda: silent_model.connections == 0, DISCONNECT_SECONDS)
    messages = await wait_for_messages(talk, conversation_id, 2)
    assert (messages[1]["content"], messages[1]["status"]) == ("Asking.", "interrupted")
    assert [(call["tool"], call["status"]) for call in messages[1]["tool_calls"]] == [
        ("Helper", "failed")
    ]
    await wait_until_free(talk, conversation_id, services)


async def test_a_disconnect_before_the_model_answers_leaves_nothing(
    talk: Talker, server: Server, silent_model: SilentModel, services: Services
) -> None:
    agent = await create_silent_agent(talk, silent_model)
    leaving = asyncio.create_task(post_stream(server, agent, {"message": "Hi"}))
    await until(lambda: silent_model.connections == 1)
    leaving.cancel()
    await until(lambda: silent_model.connections == 0, DISCONNECT_SECONDS)
    await until_none(services, agent)


async def test_a_disconnect_ends_the_retries_of_a_model_request(
    talk: Talker, server: Server, services: Services
) -> None:
    talk.script(Reply(status=503, headers={"Retry-After": "9"}))
    leaving = asyncio.create_task(post_stream(server, talk, {"message": "Hi"}))
    await until(lambda: len(talk.asked) == 1)
    leaving.cancel()
    await until_none(services, talk)
    assert len(talk.asked) == 1


async def until_none(services: Services, talk: Talker) -> None:
    """Waits until the agent has no conversation."""
    sql = "SELECT count(*) FROM conversations WHERE agent_id = $1"
    async with asyncio.timeout(10):
        while await fetch_value(services, sql, talk.agent_id):  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.01)


async def test_concurrent_disconnects_leave_no_conversation_busy(
    talk: Talker, server: Server, services: Services
) -> None:
    talk.script(Reply(texts=["word "] * 1000, delay=0.05))
    open_before = talk.models.open
    conversations = await asyncio.gather(
        *(disconnect_after(server, talk, "content_delta") for _ in range(rounds(8, 50)))
    )
    await until(lambda: talk.models.open == open_before)
    busy = "SELECT count(*) FROM conversations WHERE id = ANY($1) AND turn_until IS NOT NULL"
    async with asyncio.timeout(10):
        while await fetch_value(services, busy, conversations):  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.01)
    for conversation_id in conversations:
        messages = await wait_for_messages(talk, conversation_id, 2)
        assert messages[1]["status"] == "interrupted"
