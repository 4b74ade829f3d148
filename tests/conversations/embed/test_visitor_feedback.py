"""POST /api/v1/public/agents/:id/messages/:message_id/feedback."""

from typing import Any

import httpx
import pytest

from tests.conversations.embed.sites import ORIGIN, error_of
from tests.conversations.embed.visits import Visit, change_key, create_shop, visit, visit_as
from tests.scripted_agents import Talker

_UP = {"rating": "up", "comment": None}


async def _rate(visitor: Visit, message_id: str, body: Any) -> httpx.Response:
    headers = {"authorization": f"Bearer {visitor.token}", "origin": ORIGIN}
    path = f"{visitor.site.path}/messages/{message_id}/feedback"
    return await visitor.site.talk.world.anonymous().post(path, body, headers=headers)


async def _list_feedback(visitor: Visit) -> list[Any]:
    return [message["feedback"] for message in (await visitor.load())["messages"]]


async def test_a_visitor_rates_an_answer_and_sees_the_rating_again(talk: Talker) -> None:
    visitor = await visit(await create_shop(talk, "shop.example.com"))
    reply = await visitor.say("Hi")
    message_id = reply["assistant_reply"]["id"]
    answer = await _rate(visitor, message_id, {"rating": "up"})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"message_id": message_id, "feedback": _UP}
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert await _list_feedback(visitor) == [None, _UP]
    # The staff has ratings of its own.
    path = f"/api/v1/conversations/{reply['conversation_id']}/messages"
    page = (await talk.client.get(path)).json()
    assert [message["feedback"] for message in page["data"]] == [None, None]
    await talk.client.post(f"{path}/{message_id}/feedback", {"rating": "down"})
    assert await _list_feedback(visitor) == [None, _UP]
    await _rate(visitor, message_id, {"rating": None})
    assert await _list_feedback(visitor) == [None, None]


async def test_a_visitor_rates_only_answers_of_the_own_session(
    talk: Talker, subtests: pytest.Subtests
) -> None:
    site = await create_shop(talk)
    visitor, other, customer = await visit(site), await visit(site), await visit_as(site)
    reply = await other.say("Hi")
    await visitor.say("Hi")
    question_id = (await visitor.load())["messages"][0]["id"]
    answer_id = reply["assistant_reply"]["id"]
    wrong = [
        (visitor, answer_id, (404, "message_not_found")),
        (customer, answer_id, (404, "message_not_found")),
        (visitor, question_id, (409, "message_not_ratable")),
    ]
    for caller, message_id, error in wrong:
        with subtests.test(error=error):
            assert error_of(await _rate(caller, message_id, {"rating": "up"})) == error
    assert await _list_feedback(other) == [None, None]


async def test_a_key_can_forbid_ratings(talk: Talker) -> None:
    site = await create_shop(talk)
    visitor = await visit(site)
    message_id = (await visitor.say("Hi"))["assistant_reply"]["id"]
    await change_key(site, allow_feedback=False)
    answer = await _rate(visitor, message_id, {"rating": "up"})
    assert error_of(answer) == (403, "feedback_not_allowed")
    assert (await visitor.load())["agent"]["allow_feedback"] is False


async def test_the_key_alone_rates_nothing(talk: Talker) -> None:
    site = await create_shop(talk)
    reply = await site.say("Hi")
    path = f"{site.path}/messages/{reply['assistant_reply']['id']}/feedback"
    caller = talk.world.anonymous()
    answer = await caller.post(path, {"rating": "up"}, headers=site.headers(ORIGIN))
    assert error_of(answer) == (401, "session_token_required")


async def test_browsers_may_ask_before_they_rate(talk: Talker) -> None:
    site = await create_shop(talk, "shop.example.com")
    headers = {"origin": ORIGIN, "access-control-request-method": "POST"}
    path = f"{site.path}/messages/msg_1/feedback"
    answer = await talk.world.anonymous().http.options(path, headers=headers)
    assert answer.status_code == 204, answer.text
    assert answer.headers["access-control-allow-origin"] == ORIGIN
