"""Conversations: ending, going idle, deleting."""

import asyncio
from typing import Any

import pytest

from app.areas import AREAS
from app.domain.chat import conversations
from app.services import Services
from tests.asking import refused
from tests.chat.conversation_helpers import (
    begin_conversation,
    conversation_path,
    get_conversation,
    list_ids,
    run_sql,
)
from tests.model_server import ModelServer, Reply
from tests.talk import Talker, talker
from tests.world import World


async def list_completed_events(talk: Talker) -> list[dict[str, Any]]:
    params: dict[str, Any] = {"event_type": "agent.chat.completed", "per_page": 100}
    answer = await talk.client.get("/api/v1/event-log", params=params)
    found = [entry["data"] for entry in reversed(answer.json()["data"])]
    return [data for data in found if data["agent_id"] == talk.agent_id]


async def test_ending_is_told_once_however_often_it_is_asked_for(talk: Talker) -> None:
    conversation_id = await begin_conversation(talk)
    answers = await asyncio.gather(
        *(talk.client.post(f"{conversation_path(conversation_id)}/end") for _ in range(4))
    )
    assert {answer.status_code for answer in answers} == {200}
    shown = await get_conversation(talk, conversation_id)
    assert shown["status"] == "ended"
    assert shown["ended_at"]
    assert (await talk.client.post(f"{conversation_path(conversation_id)}/end")).json() == shown
    assert await list_completed_events(talk) == [
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


async def test_writing_in_an_ended_conversation_opens_it_again(talk: Talker) -> None:
    conversation_id = await begin_conversation(talk)
    await talk.client.post(f"{conversation_path(conversation_id)}/end")
    await talk.say("One more thing", conversation_id=conversation_id)
    shown = await get_conversation(talk, conversation_id)
    assert (shown["status"], shown["ended_at"]) == ("active", None)
    await talk.client.post(f"{conversation_path(conversation_id)}/end")
    assert [data["reason"] for data in await list_completed_events(talk)] == ["ended", "ended"]


async def test_an_ended_conversation_counts_as_active_no_more(talk: Talker) -> None:
    conversation_id = await begin_conversation(talk)
    await begin_conversation(talk)
    status = (await talk.client.get(f"{talk.path}/status")).json()
    assert status["active_conversations"] == 2
    await talk.client.post(f"{conversation_path(conversation_id)}/end")
    status = (await talk.client.get(f"{talk.path}/status")).json()
    assert status["active_conversations"] == 1


@pytest.mark.parametrize(
    ("change", "online"), [({}, True), ({"status": "draft"}, True), ({"status": "archived"}, False)]
)
async def test_an_agent_is_online_unless_it_is_archived(
    talk: Talker, change: dict[str, str], *, online: bool
) -> None:
    await talk.client.put(talk.path, change)
    assert (await talk.client.get(f"{talk.path}/status")).json() == {
        "agent_id": talk.agent_id,
        "status": change.get("status", "published"),
        "is_online": online,
        "active_conversations": 0,
        "training": {"status": "idle", "documents_total": 0, "documents_done": 0},
    }


async def test_an_agent_without_a_way_to_its_model_is_not_online(talk: Talker) -> None:
    other = await talk.agent(primary_model="nobody/has-a-key")
    assert (await talk.client.get(f"{other.path}/status")).json()["is_online"] is False


async def age_conversation(services: Services, conversation_id: str, minutes: int) -> None:
    await run_sql(
        services,
        "UPDATE conversations SET last_message_at = now() - $2 * interval '1 minute' WHERE id = $1",
        conversation_id,
        minutes,
    )


async def test_half_an_hour_of_silence_ends_a_conversation(
    talk: Talker, services: Services
) -> None:
    idle, fresh = await begin_conversation(talk), await begin_conversation(talk)
    await age_conversation(services, idle, 31)
    await age_conversation(services, fresh, 29)
    await conversations.end_idle(services)
    assert (await get_conversation(talk, idle))["status"] == "ended"
    assert (await get_conversation(talk, fresh))["status"] == "active"
    [event] = await list_completed_events(talk)
    assert (event["conversation_id"], event["reason"]) == (idle, "idle")
    assert (event["job_id"], event["status"], event["message"]) == (None, None, None)


async def test_silence_is_told_once_even_by_two_workers_at_once(
    talk: Talker, services: Services
) -> None:
    conversation_ids = [await begin_conversation(talk) for _ in range(5)]
    for conversation_id in conversation_ids:
        await age_conversation(services, conversation_id, 60)
    await asyncio.gather(*(conversations.end_idle(services) for _ in range(4)))
    await conversations.end_idle(services)
    told = [data["conversation_id"] for data in await list_completed_events(talk)]
    assert sorted(told) == sorted(conversation_ids)


async def test_an_idle_conversation_that_is_being_answered_does_not_end(
    talk: Talker, services: Services
) -> None:
    body = {"message": "Take your time"}
    job = (await talk.client.post(f"{talk.path}/chat/async", body)).json()
    await age_conversation(services, job["conversation_id"], 600)
    await conversations.end_idle(services)
    assert (await get_conversation(talk, job["conversation_id"]))["status"] == "active"
    assert await list_completed_events(talk) == []


async def test_writing_after_an_idle_end_opens_the_conversation_again(
    talk: Talker, services: Services
) -> None:
    conversation_id = await begin_conversation(talk)
    await age_conversation(services, conversation_id, 31)
    await conversations.end_idle(services)
    await talk.say("I am back", conversation_id=conversation_id)
    assert (await get_conversation(talk, conversation_id))["status"] == "active"
    await conversations.end_idle(services)
    assert (await get_conversation(talk, conversation_id))["status"] == "active"


async def test_the_idle_are_ended_across_tenants(
    talk: Talker, world: World, models: ModelServer, services: Services
) -> None:
    other = await talker(world, models)
    for one in (talk, other):
        await age_conversation(services, await begin_conversation(one), 31)
    await conversations.end_idle(services)
    for one in (talk, other):
        assert [data["reason"] for data in await list_completed_events(one)] == ["idle"]


def test_workers_look_for_the_idle_by_themselves() -> None:
    assert conversations.end_idle in [task.run for task in AREAS.periodic_tasks]
    assert conversations.IDLE_SECONDS == 1800


async def test_a_deleted_conversation_takes_its_messages_and_its_log_along(talk: Talker) -> None:
    conversation_id, other = (
        await begin_conversation(talk, "Forget me"),
        await begin_conversation(talk, "Keep me"),
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
    conversation_id, hold = await begin_conversation(talk), asyncio.Event()
    talk.script(Reply(hold=hold))
    before = len(talk.asked)
    answering = asyncio.create_task(talk.say("Slowly", conversation_id=conversation_id))
    try:
        async with asyncio.timeout(10):
            while len(talk.asked) == before:  # noqa: ASYNC110  # the model is a server of its own
                await asyncio.sleep(0.005)
        refused(
            await talk.client.delete(conversation_path(conversation_id)), 409, "conversation_busy"
        )
    finally:
        hold.set()
        await answering
    assert (await talk.client.delete(conversation_path(conversation_id))).status_code == 204


async def test_a_conversation_with_a_pending_job_cannot_be_deleted_until_it_is_cancelled(
    talk: Talker,
) -> None:
    job = (await talk.client.post(f"{talk.path}/chat/async", {"message": "Later"})).json()
    path = conversation_path(job["conversation_id"])
    refused(await talk.client.delete(path), 409, "conversation_busy")
    await talk.client.delete(f"{talk.path}/chat/jobs/{job['job_id']}")
    assert (await talk.client.delete(path)).status_code == 204


async def test_a_deleted_agent_takes_its_conversations_along(talk: Talker) -> None:
    conversation_id = await begin_conversation(talk)
    assert (await talk.client.delete(talk.path)).status_code == 204
    refused(
        await talk.client.get(conversation_path(conversation_id)), 404, "conversation_not_found"
    )


async def test_what_was_said_in_a_deleted_conversation_leaves_the_event_log(talk: Talker) -> None:
    gone = (await talk.say("My secret is 12345"))["conversation_id"]
    kept = (await talk.say("Hello"))["conversation_id"]
    assert (await talk.client.delete(conversation_path(gone))).status_code == 204
    params: dict[str, Any] = {"event_type": "agent.chat.message", "per_page": 100}
    answer = await talk.client.get("/api/v1/event-log", params=params)
    assert "12345" not in answer.text
    assert {entry["data"]["conversation_id"] for entry in answer.json()["data"]} == {kept}
