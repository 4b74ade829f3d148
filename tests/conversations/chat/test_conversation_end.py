"""Conversations: ending, going idle, deleting."""

import asyncio
from functools import partial
from typing import Any

import httpx
import pytest

from app.areas import AREAS
from app.domain.conversations.chat import conversations, queries
from app.services import Services
from tests.assertions import refused, until
from tests.conversations.chat.conversation_helpers import (
    conversation_path,
    get_conversation,
    has_asked,
    list_event_data,
    list_ids,
    send_chat,
    start_conversation,
)
from tests.conversations.chat.database import execute, fetch_value, record_statements
from tests.conversations.chat.job_helpers import accept_job, job_path, pause_job
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import Talker, talker
from tests.world import World

COMPLETED = "agent.chat.completed"


async def test_repeated_requests_end_a_conversation_once(talk: Talker) -> None:
    conversation_id = await start_conversation(talk)
    answers = await asyncio.gather(
        *(talk.client.post(f"{conversation_path(conversation_id)}/end") for _ in range(4))
    )
    assert {answer.status_code for answer in answers} == {200}
    conversation = await get_conversation(talk, conversation_id)
    assert conversation["status"] == "ended"
    assert conversation["ended_at"]
    assert (
        await talk.client.post(f"{conversation_path(conversation_id)}/end")
    ).json() == conversation
    assert await list_event_data(talk, COMPLETED) == [
        {
            "agent_id": talk.agent_id,
            "conversation_id": conversation_id,
            "reason": "ended",
            "job_id": None,
            "status": None,
            "message": None,
            "error": None,
        }
    ]


async def test_a_message_reopens_an_ended_conversation(talk: Talker) -> None:
    conversation_id = await start_conversation(talk)
    await talk.client.post(f"{conversation_path(conversation_id)}/end")
    await talk.say("One more thing", conversation_id=conversation_id)
    conversation = await get_conversation(talk, conversation_id)
    assert (conversation["status"], conversation["ended_at"]) == ("active", None)
    await talk.client.post(f"{conversation_path(conversation_id)}/end")
    assert [data["reason"] for data in await list_event_data(talk, COMPLETED)] == ["ended", "ended"]


async def age_conversation(services: Services, conversation_id: str, minutes: int) -> None:
    await execute(
        services,
        "UPDATE conversations SET last_message_at = now() - $2 * interval '1 minute' WHERE id = $1",
        conversation_id,
        minutes,
    )


async def test_a_conversation_ends_after_half_an_hour_without_messages(
    talk: Talker, services: Services
) -> None:
    idle, fresh = await start_conversation(talk), await start_conversation(talk)
    await age_conversation(services, idle, 31)
    await age_conversation(services, fresh, 29)
    await conversations.end_idle(services)
    assert (await get_conversation(talk, idle))["status"] == "ended"
    assert (await get_conversation(talk, fresh))["status"] == "active"
    [event] = await list_event_data(talk, COMPLETED)
    assert (event["conversation_id"], event["reason"]) == (idle, "idle")
    assert (event["job_id"], event["status"], event["message"]) == (None, None, None)


async def test_concurrent_workers_end_an_idle_conversation_once(
    talk: Talker, services: Services
) -> None:
    conversation_ids = [await start_conversation(talk) for _ in range(5)]
    for conversation_id in conversation_ids:
        await age_conversation(services, conversation_id, 60)
    await asyncio.gather(*(conversations.end_idle(services) for _ in range(4)))
    await conversations.end_idle(services)
    ended_ids = [data["conversation_id"] for data in await list_event_data(talk, COMPLETED)]
    assert sorted(ended_ids) == sorted(conversation_ids)


async def test_all_idle_conversations_end_in_one_statement(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        await age_conversation(services, await start_conversation(talk), 31)
    with record_statements(services, monkeypatch) as statements:
        assert await conversations.end_idle(services) >= 3
    assert len([text for text in statements if "UPDATE conversations" in text]) == 1
    assert len(await list_event_data(talk, COMPLETED)) == 3


async def test_an_idle_conversation_that_is_being_answered_does_not_end(
    talk: Talker, services: Services
) -> None:
    body = {"message": "Take your time"}
    job = (await talk.client.post(f"{talk.path}/chat/async", body)).json()
    await age_conversation(services, job["conversation_id"], 600)
    await conversations.end_idle(services)
    assert (await get_conversation(talk, job["conversation_id"]))["status"] == "active"
    assert await list_event_data(talk, COMPLETED) == []


async def test_a_message_reopens_a_conversation_that_ended_idle(
    talk: Talker, services: Services
) -> None:
    conversation_id = await start_conversation(talk)
    await age_conversation(services, conversation_id, 31)
    await conversations.end_idle(services)
    await talk.say("I am back", conversation_id=conversation_id)
    assert (await get_conversation(talk, conversation_id))["status"] == "active"
    await conversations.end_idle(services)
    assert (await get_conversation(talk, conversation_id))["status"] == "active"


async def test_idle_conversations_of_every_tenant_end(
    talk: Talker, world: World, models: ModelServer, services: Services
) -> None:
    other = await talker(world, models)
    for agent in (talk, other):
        await age_conversation(services, await start_conversation(agent), 31)
    await conversations.end_idle(services)
    for agent in (talk, other):
        assert [data["reason"] for data in await list_event_data(agent, COMPLETED)] == ["idle"]


def test_ending_idle_conversations_is_a_periodic_task() -> None:
    assert conversations.end_idle in [task.run for task in AREAS.periodic_tasks]
    assert conversations.IDLE_SECONDS == 1800


async def _end(talk: Talker, conversation_id: str) -> httpx.Response:
    return await talk.client.post(f"{conversation_path(conversation_id)}/end")


async def test_a_conversation_that_is_being_answered_cannot_be_ended(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for way in ("chat", "chat/stream"):
        with subtests.test(way=way):
            talk = await talker(world, models)
            conversation_id, hold = await start_conversation(talk), asyncio.Event()
            talk.script(Reply(hold=hold))
            requests_before = len(talk.asked)
            body = {"message": "Slowly", "conversation_id": conversation_id}
            turn = asyncio.create_task(talk.client.post(f"{talk.path}/{way}", body))
            try:
                await until(partial(has_asked, talk, requests_before))
                refused(await _end(talk, conversation_id), 409, "conversation_busy")
                assert (await get_conversation(talk, conversation_id))["status"] == "active"
            finally:
                hold.set()
                await turn
            assert (await _end(talk, conversation_id)).json()["message_count"] == 4
            assert [data["reason"] for data in await list_event_data(talk, COMPLETED)] == ["ended"]


async def test_a_conversation_with_an_unfinished_job_cannot_be_ended(
    talk: Talker, services: Services
) -> None:
    job = await accept_job(talk)
    refused(await _end(talk, job["conversation_id"]), 409, "conversation_busy")
    async with pause_job(talk, services, job):
        refused(await _end(talk, job["conversation_id"]), 409, "conversation_busy")
    assert (await _end(talk, job["conversation_id"])).json()["status"] == "ended"
    assert [data["reason"] for data in await list_event_data(talk, COMPLETED)] == ["job", "ended"]


async def test_a_conversation_can_be_ended_after_its_job_was_cancelled(talk: Talker) -> None:
    job = await accept_job(talk)
    await talk.client.delete(job_path(talk, job))
    assert (await _end(talk, job["conversation_id"])).json()["status"] == "ended"


async def test_a_conversation_that_is_deleted_while_it_ends_is_not_found(
    talk: Talker, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_id, end = await start_conversation(talk), queries.end

    async def end_after_deletion(*args: Any) -> None:
        await execute(services, "DELETE FROM conversations WHERE id = $1", conversation_id)
        await end(*args)

    monkeypatch.setattr(queries, "end", end_after_deletion)
    refused(await _end(talk, conversation_id), 404, "conversation_not_found")
    assert await list_event_data(talk, COMPLETED) == []


async def test_a_turn_that_starts_while_the_conversation_ends_reopens_it(
    talk: Talker, services: Services
) -> None:
    """Of two requests at once, one waits for the other: no reply is in an ended conversation."""
    conversation_id = await start_conversation(talk)
    for _ in range(5):
        ended, said = await asyncio.gather(
            _end(talk, conversation_id),
            send_chat(talk.client, talk, conversation_id=conversation_id),
        )
        assert (ended.status_code, said.status_code) in {(200, 200), (409, 200)}
        sql = "SELECT ended_at < last_message_at FROM conversations WHERE id = $1"
        assert not await fetch_value(services, sql, conversation_id)


async def test_a_reply_after_a_lost_lease_reopens_the_conversation(
    talk: Talker, services: Services
) -> None:
    conversation_id, hold = await start_conversation(talk), asyncio.Event()
    talk.script(Reply(hold=hold))
    requests_before = len(talk.asked)
    turn = asyncio.create_task(talk.say("Slowly", conversation_id=conversation_id))
    try:
        await until(partial(has_asked, talk, requests_before))
        expire = "UPDATE conversations SET turn_until = now() - interval '1 second' WHERE id = $1"
        await execute(services, expire, conversation_id)
        assert (await _end(talk, conversation_id)).status_code == 200
    finally:
        hold.set()
        await turn
    assert (await get_conversation(talk, conversation_id))["status"] == "active"


async def test_deleting_a_conversation_deletes_its_messages_and_log_entries(talk: Talker) -> None:
    conversation_id, other = (
        await start_conversation(talk, "Forget me"),
        await start_conversation(talk, "Keep me"),
    )
    answer = await talk.client.delete(conversation_path(conversation_id))
    assert answer.status_code == 204
    assert answer.content == b""
    for path in (
        conversation_path(conversation_id),
        f"{conversation_path(conversation_id)}/messages",
    ):
        refused(await talk.client.get(path), 404, "conversation_not_found")
    refused(
        await talk.client.delete(conversation_path(conversation_id)), 404, "conversation_not_found"
    )
    body = {"message": "Still there?", "conversation_id": conversation_id}
    refused(await talk.client.post(f"{talk.path}/chat", body), 404, "conversation_not_found")
    assert await list_ids(talk) == [other]
    log = (await talk.client.get(f"{talk.path}/logs", params={"per_page": 100})).json()["data"]
    assert {entry["conversation_id"] for entry in log} == {other}


async def test_a_conversation_that_is_being_answered_cannot_be_deleted(talk: Talker) -> None:
    conversation_id, hold = await start_conversation(talk), asyncio.Event()
    talk.script(Reply(hold=hold))
    requests_before = len(talk.asked)
    turn = asyncio.create_task(talk.say("Slowly", conversation_id=conversation_id))
    try:
        await until(partial(has_asked, talk, requests_before))
        refused(
            await talk.client.delete(conversation_path(conversation_id)), 409, "conversation_busy"
        )
    finally:
        hold.set()
        await turn
    assert (await talk.client.delete(conversation_path(conversation_id))).status_code == 204


async def test_a_conversation_with_a_pending_job_cannot_be_deleted_until_it_is_cancelled(
    talk: Talker,
) -> None:
    job = (await talk.client.post(f"{talk.path}/chat/async", {"message": "Later"})).json()
    path = conversation_path(job["conversation_id"])
    refused(await talk.client.delete(path), 409, "conversation_busy")
    await talk.client.delete(f"{talk.path}/chat/jobs/{job['job_id']}")
    assert (await talk.client.delete(path)).status_code == 204


async def test_deleting_an_agent_deletes_its_conversations(talk: Talker) -> None:
    conversation_id = await start_conversation(talk)
    assert (await talk.client.delete(talk.path)).status_code == 204
    refused(
        await talk.client.get(conversation_path(conversation_id)), 404, "conversation_not_found"
    )


async def test_deleting_a_conversation_deletes_its_messages_from_the_event_log(
    talk: Talker,
) -> None:
    deleted_id = (await talk.say("My secret is 12345"))["conversation_id"]
    other_id = (await talk.say("Hello"))["conversation_id"]
    assert (await talk.client.delete(conversation_path(deleted_id))).status_code == 204
    params: dict[str, Any] = {"event_type": "agent.chat.message", "per_page": 100}
    answer = await talk.client.get("/api/v1/event-log", params=params)
    assert "12345" not in answer.text
    assert {entry["data"]["conversation_id"] for entry in answer.json()["data"]} == {other_id}
