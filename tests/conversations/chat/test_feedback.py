"""POST /api/v1/conversations/:id/messages/:message_id/feedback."""

from typing import Any

import httpx
import pytest

from app.services import Services
from tests.assertions import refused
from tests.conversations.chat.database import fetch_value
from tests.conversations.chat.log_helpers import get_stats
from tests.scripted_agents import Talker
from tests.world import Client, World

_DOWN = {"rating": "down", "comment": "The shop opens at ten."}


async def _rate(caller: Client, reply: dict[str, Any], body: Any) -> httpx.Response:
    message_id = reply["message"]["id"]
    path = f"/api/v1/conversations/{reply['conversation_id']}/messages/{message_id}/feedback"
    return await caller.post(path, body)


async def _list_feedback(caller: Client, reply: dict[str, Any]) -> list[Any]:
    answer = await caller.get(f"/api/v1/conversations/{reply['conversation_id']}/messages")
    assert answer.status_code == 200, answer.text
    return [message["feedback"] for message in answer.json()["data"]]


async def _list_rated(caller: Client) -> list[dict[str, Any]]:
    log = (await caller.get("/api/v1/event-log")).json()["data"]
    return [entry["data"] for entry in reversed(log) if entry["type"] == "agent.chat.rated"]


async def test_the_last_rating_counts_and_null_withdraws_it(talk: Talker) -> None:
    reply = await talk.say("When does the shop open?")
    assert await _list_feedback(talk.client, reply) == [None, None]
    for body in ({"rating": "up"}, _DOWN, _DOWN):
        answer = await _rate(talk.client, reply, body)
        assert answer.status_code == 200, answer.text
        feedback = {"comment": None, **body}
        assert answer.json() == {"message_id": reply["message"]["id"], "feedback": feedback}
        assert await _list_feedback(talk.client, reply) == [None, feedback]
    stats = await get_stats(talk)
    assert (stats["ratings_up"], stats["ratings_down"]) == (0, 1)
    answer = await _rate(talk.client, reply, {"rating": None, "comment": "ignored"})
    assert answer.json()["feedback"] is None
    assert await _list_feedback(talk.client, reply) == [None, None]
    ids = {"agent_id": talk.agent_id, "conversation_id": reply["conversation_id"]}
    ids["message_id"] = reply["message"]["id"]
    # The repetition changed nothing.
    assert await _list_rated(talk.client) == [
        {**ids, "rating": "up", "comment": None},
        {**ids, **_DOWN},
        {**ids, "rating": None, "comment": None},
    ]


async def test_each_reader_has_a_rating_of_their_own(talk: Talker, world: World) -> None:
    reply = await talk.say("Hi")
    colleague = await world.user("agent_developer", talk.client.tenant_id)
    await _rate(talk.client, reply, {"rating": "up"})
    await _rate(colleague, reply, _DOWN)
    assert await _list_feedback(talk.client, reply) == [None, {"rating": "up", "comment": None}]
    assert await _list_feedback(colleague, reply) == [None, _DOWN]
    stats = await get_stats(talk)
    assert (stats["ratings_up"], stats["ratings_down"]) == (1, 1)


async def test_who_may_not_read_a_conversation_cannot_rate_in_it(
    talk: Talker, world: World, admin: Client, subtests: pytest.Subtests
) -> None:
    reply = await talk.say("Hi")
    stranger = await world.user("agent_user", talk.client.tenant_id)
    for name, caller in (("a colleague", stranger), ("another tenant", admin)):
        with subtests.test(name):
            refused(await _rate(caller, reply, {"rating": "up"}), 404, "conversation_not_found")
    assert await _list_feedback(talk.client, reply) == [None, None]


async def test_only_answers_of_the_conversation_can_be_rated(talk: Talker) -> None:
    reply, other = await talk.say("Hi"), await talk.say("Hello")
    answer = await talk.client.get(f"/api/v1/conversations/{reply['conversation_id']}/messages")
    question = {**reply, "message": answer.json()["data"][0]}
    refused(await _rate(talk.client, question, {"rating": "up"}), 409, "message_not_ratable")
    for message in (other["message"], {"id": "msg_none"}):
        unknown = {**reply, "message": message}
        refused(await _rate(talk.client, unknown, {"rating": "up"}), 404, "message_not_found")


async def test_wrong_bodies_are_refused(talk: Talker, subtests: pytest.Subtests) -> None:
    reply = await talk.say("Hi")
    bodies: list[Any] = [
        {},
        {"rating": "best"},
        {"rating": 1},
        {"rating": "up", "comment": 7},
        {"rating": "up", "comment": "x" * 2001},
    ]
    for body in bodies:
        with subtests.test(body=body):
            refused(await _rate(talk.client, reply, body), 422, "validation_error")


async def test_a_comment_stays_out_of_the_events_of_an_agent_without_a_log(talk: Talker) -> None:
    answer = await talk.client.put(f"{talk.path}/log-settings", {"log_messages": False})
    assert answer.status_code == 200, answer.text
    reply = await talk.say("Hi")
    await _rate(talk.client, reply, _DOWN)
    assert [event["comment"] for event in await _list_rated(talk.client)] == [None]
    assert await _list_feedback(talk.client, reply) == [None, _DOWN]


async def test_ratings_are_deleted_with_the_conversation(talk: Talker, services: Services) -> None:
    reply = await talk.say("Hi")
    await _rate(talk.client, reply, _DOWN)
    count = "SELECT count(*) FROM message_feedback WHERE agent_id = $1"
    assert await fetch_value(services, count, talk.agent_id) == 1
    answer = await talk.client.delete(f"/api/v1/conversations/{reply['conversation_id']}")
    assert answer.status_code == 204, answer.text
    assert await fetch_value(services, count, talk.agent_id) == 0
    assert await _list_rated(talk.client) == []
