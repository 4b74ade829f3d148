"""Streamed chat: failures within a stream, and clients that leave."""

import asyncio
import time
from typing import Any

import pytest

from app.services import Services
from db.session import ALL_TENANTS
from tests.asking import until
from tests.chat.stream_helpers import (
    SilentModel,
    delta,
    first_message_id,
    list_messages,
    on_silent,
    stream_chat,
    while_reading,
)
from tests.model_server import Reply
from tests.server import Server
from tests.talk import Talker, names_of

GONE_SECONDS = 2.0


async def wait_for_messages(
    talk: Talker, conversation_id: str, messages: int
) -> list[dict[str, Any]]:
    """The messages, once there are so many; the web process keeps them a moment after the end."""
    async with asyncio.timeout(5):
        found = await list_messages(talk, conversation_id)
        while len(found) < messages:
            await asyncio.sleep(0.01)
            found = await list_messages(talk, conversation_id)
    return found


async def wait_until_free(talk: Talker, conversation_id: str, services: Services) -> None:
    """Wait for nobody to hold the conversation; the web process lets go of it by itself."""
    held = "SELECT turn_until IS NOT NULL FROM conversations WHERE id = $1"
    async with asyncio.timeout(5):
        while True:
            async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
                if not await (await tx.raw()).fetchval(held, conversation_id):
                    break
            await asyncio.sleep(0.01)
    talk.script(Reply(texts=["Free"]))
    again = await talk.say("And now?", conversation_id=conversation_id)
    assert again["message"]["content"] == "Free"


@pytest.mark.parametrize(
    ("status", "reason"), [(400, "refused"), (429, "rate_limited"), (503, "unavailable")]
)
async def test_a_model_that_refuses_ends_the_stream_with_an_error(
    talk: Talker, server: Server, services: Services, status: int, reason: str
) -> None:
    talk.script(Reply(status=status, message="not today", headers={"Retry-After": "0"}))
    events = await stream_chat(server, talk)
    assert [name for name, _ in events] == ["message_start", "error"]
    error = events[1][1]
    assert set(error) == {"code", "message", "details"}
    assert error["code"] == "provider_error"
    assert "not today" in error["message"]
    assert error["details"]["reason"] == reason
    conversation_id = first_message_id(events)
    assert await list_messages(talk, conversation_id) == []
    await wait_until_free(talk, conversation_id, services)


async def test_a_conversation_whose_first_turn_failed_counts_once_it_has_a_reply(
    talk: Talker, server: Server
) -> None:
    talk.script(Reply(status=400), Reply())
    conversation_id = first_message_id(await stream_chat(server, talk))
    await talk.say("Again", conversation_id=conversation_id)
    stats = (await talk.client.get(f"{talk.path}/stats")).json()
    assert stats["total_messages"] == 2
    assert stats["total_conversations"] == 1


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(texts=["One ", "two ", "three"], drop_after=2), "broken"),
        (Reply(texts=["One ", "two ", "three"], error_after=2, message="I fell"), "refused"),
    ],
)
async def test_a_model_that_breaks_off_leaves_what_it_said(
    talk: Talker, server: Server, services: Services, reply: Reply, reason: str
) -> None:
    talk.script(reply)
    events = await stream_chat(server, talk)
    assert names_of(events) == ["message_start", "content_delta", "error"]
    assert events[-1][1]["code"] == "provider_error"
    assert events[-1][1]["details"]["reason"] == reason
    kept = await list_messages(talk, first_message_id(events))
    assert [(item["role"], item["content"], item["status"]) for item in kept] == [
        ("user", "Hi", "complete"),
        ("assistant", "One two ", "interrupted"),
    ]
    # Half an answer is not asked for again behind the reader's back.
    assert len(talk.asked) == 1
    await wait_until_free(talk, first_message_id(events), services)


async def test_half_a_reply_is_part_of_what_the_model_is_shown_next(
    talk: Talker, server: Server
) -> None:
    talk.script(Reply(texts=["Half", "lost"], drop_after=1), Reply())
    conversation_id = first_message_id(await stream_chat(server, talk))
    await talk.say("Go on", conversation_id=conversation_id)
    assert [item["content"] for item in talk.asked[1]["messages"][1:]] == ["Hi", "Half", "Go on"]


async def list_usage(services: Services, talk: Talker) -> list[tuple[int, int, int]]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = await (await tx.raw()).fetch(
            "SELECT turns, prompt_tokens, completion_tokens FROM usage WHERE agent_id = $1",
            talk.agent_id,
        )
    return [tuple(row) for row in rows]


async def test_half_a_reply_is_paid_for(talk: Talker, server: Server, services: Services) -> None:
    talk.script(Reply(texts=["Half of it", "lost"], drop_after=1))
    await stream_chat(server, talk)
    [(turns, prompt_tokens, completion_tokens)] = await list_usage(services, talk)
    assert turns == 1
    assert prompt_tokens > 0
    assert completion_tokens > 0


async def test_leaving_early_does_not_make_an_answer_free(
    talk: Talker, server: Server, services: Services
) -> None:
    talk.script(Reply(texts=["word "] * 1000, delay=0.02))
    conversation_id = await leave_stream(server, talk, "content_delta")
    await wait_for_messages(talk, conversation_id, 2)
    [(turns, prompt_tokens, completion_tokens)] = await list_usage(services, talk)
    assert turns == 1
    assert prompt_tokens > 0
    assert completion_tokens > 0


async def leave_stream(server: Server, talk: Talker, until: str, **more: Any) -> str:
    """Read until the first event of that name, then hang up; which conversation it was."""
    async with while_reading(server, talk, **more) as events:
        name, data = await anext(events)
        conversation_id: str = data["conversation_id"]
        while name != until:
            name, data = await anext(events)
    return conversation_id


async def test_a_reader_who_goes_ends_the_models_answer_and_keeps_what_was_said(
    talk: Talker, server: Server, services: Services
) -> None:
    talk.script(Reply(texts=["word "] * 1000, delay=0.02))
    closed = talk.models.closed_early
    conversation_id = await leave_stream(server, talk, "content_delta")
    await until(lambda: talk.models.closed_early > closed, GONE_SECONDS)
    kept = await wait_for_messages(talk, conversation_id, 2)
    assert [item["status"] for item in kept] == ["complete", "interrupted"]
    said = kept[1]["content"]
    assert said
    assert said == "word " * (len(said) // 5)
    assert len(said) < 5 * 200
    events = await talk.client.get(
        "/api/v1/event-log", params={"event_type": "agent.chat.message", "per_page": 1}
    )
    assert events.json()["data"][0]["data"]["status"] == "interrupted"
    await wait_until_free(talk, conversation_id, services)


async def test_a_model_that_is_silent_in_the_middle_is_hung_up_on_when_the_reader_goes(
    talk: Talker, server: Server, silent: SilentModel, services: Services
) -> None:
    silent.said = delta("Well, ")
    mine = await on_silent(talk, silent)
    started = time.monotonic()
    conversation_id = await leave_stream(server, mine, "content_delta")
    assert silent.asked == 1
    await until(lambda: silent.open == 0, GONE_SECONDS)
    assert time.monotonic() - started < GONE_SECONDS + 1
    kept = await wait_for_messages(mine, conversation_id, 2)
    assert (kept[1]["content"], kept[1]["status"]) == ("Well, ", "interrupted")


async def test_a_reader_who_goes_before_the_first_word_leaves_nothing_behind(
    talk: Talker, server: Server, silent: SilentModel, services: Services
) -> None:
    mine = await on_silent(talk, silent)
    async with while_reading(server, mine) as events:
        conversation_id = (await anext(events))[1]["conversation_id"]
        await until(lambda: silent.open == 1)
    await until(lambda: silent.open == 0, GONE_SECONDS)
    assert silent.asked == 1
    await mine.client.put(mine.path, {"primary_model": f"scripted/{talk.model}"})
    mine.model = talk.model
    await wait_until_free(mine, conversation_id, services)
    # Only what was asked and answered afterwards.
    assert len(await list_messages(mine, conversation_id)) == 2


async def test_a_reader_who_goes_ends_a_delegated_task_as_well(
    talk: Talker, server: Server, silent: SilentModel, services: Services
) -> None:
    helper = await on_silent(talk, silent, name="Helper")
    await talk.client.post(f"{talk.path}/sub-agents/attach", {"agent_id": helper.agent_id})
    talk.script(Reply(texts=["Asking."], calls=[("delegate_to_helper", {"task": "x"})]))
    async with while_reading(server, talk) as events:
        conversation_id = (await anext(events))[1]["conversation_id"]
        await until(lambda: silent.open == 1)
    await until(lambda: silent.open == 0, GONE_SECONDS)
    kept = await wait_for_messages(talk, conversation_id, 2)
    assert (kept[1]["content"], kept[1]["status"]) == ("Asking.", "interrupted")
    assert [(call["tool"], call["status"]) for call in kept[1]["tool_calls"]] == [
        ("Helper", "failed")
    ]
    await wait_until_free(talk, conversation_id, services)


async def test_a_reader_who_goes_while_the_model_is_asked_again_ends_that_too(
    talk: Talker, server: Server, services: Services
) -> None:
    talk.script(Reply(status=503, headers={"Retry-After": "9"}))
    async with while_reading(server, talk) as events:
        conversation_id = (await anext(events))[1]["conversation_id"]
        await until(lambda: len(talk.asked) == 1)
    await wait_until_free(talk, conversation_id, services)
    assert len(talk.asked) == 2


async def test_fifty_readers_who_go_at_once_leave_no_conversation_held(
    talk: Talker, server: Server, services: Services
) -> None:
    talk.script(Reply(texts=["word "] * 1000, delay=0.05))
    open_before = talk.models.open
    conversations = await asyncio.gather(
        *(leave_stream(server, talk, "content_delta") for _ in range(50))
    )
    await until(lambda: talk.models.open == open_before, 5)
    held = "SELECT count(*) FROM conversations WHERE id = ANY($1) AND turn_until IS NOT NULL"
    async with asyncio.timeout(5):
        while True:
            async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
                if not await (await tx.raw()).fetchval(held, list(conversations)):
                    break
            await asyncio.sleep(0.01)
    for conversation_id in conversations:
        kept = await wait_for_messages(talk, conversation_id, 2)
        assert kept[1]["status"] == "interrupted"
