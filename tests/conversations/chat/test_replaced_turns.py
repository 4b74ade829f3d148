"""A question that takes the place of the last one: to try again, or to ask differently."""

from typing import Any

import pytest

from app.services import Services
from tests.assertions import refused
from tests.conversations.chat.conversation_helpers import (
    count_conversations,
    list_messages,
    send_chat,
)
from tests.conversations.chat.job_helpers import run_new_job
from tests.conversations.chat.log_helpers import list_log_entries
from tests.conversations.embed.sites import create_site
from tests.conversations.embed.visits import visit
from tests.model_server import Reply
from tests.scripted_agents import Talker


async def _list_texts(talk: Talker, conversation_id: str) -> list[tuple[str, str]]:
    messages = await list_messages(talk, conversation_id)
    return [(item["content"], item["status"]) for item in messages]


async def _last_answer(talk: Talker, conversation_id: str) -> dict[str, Any]:
    """Returns what a question needs to take the place of the last one."""
    last = (await list_messages(talk, conversation_id))[-1]
    return {"conversation_id": conversation_id, "replaces": last["id"]}


async def _start(talk: Talker) -> str:
    """Two turns."""
    talk.script(Reply(texts=["a"]), Reply(texts=["b"]), Reply(texts=["better"]))
    conversation_id: str = (await talk.say("1"))["conversation_id"]
    await talk.say("2", conversation_id=conversation_id)
    return conversation_id


async def test_the_new_turn_takes_the_place_of_the_last_one(talk: Talker) -> None:
    conversation_id = await _start(talk)
    reply = await talk.say("2, please", **await _last_answer(talk, conversation_id))
    assert reply["message"]["content"] == "better"
    asked = [item["content"] for item in talk.asked[-1]["messages"][1:]]
    assert asked == ["1", "a", "2, please"]
    kept = [("1", "complete"), ("a", "complete")]
    assert await _list_texts(talk, conversation_id) == [
        *kept,
        ("2, please", "complete"),
        ("better", "complete"),
    ]
    # Later turns do not see it, either.
    await talk.say("3", conversation_id=conversation_id)
    asked = [item["content"] for item in talk.asked[-1]["messages"][1:]]
    assert asked == ["1", "a", "2, please", "better", "3"]


async def test_the_log_keeps_what_was_replaced(talk: Talker) -> None:
    conversation_id = await _start(talk)
    await talk.say("2", **await _last_answer(talk, conversation_id))
    entries = await list_log_entries(talk, type="message", conversation_id=conversation_id)
    assert [entry["content"] for entry in reversed(entries)] == ["1", "a", "2", "b", "2", "better"]


async def test_a_failed_turn_is_tried_again(talk: Talker) -> None:
    talk.script(Reply(status=400), Reply(status=400), Reply(texts=["Now."]))
    refused(await send_chat(talk.client, talk, "Hi"), 400, "provider_rejected")
    conversation = (await talk.client.get(f"{talk.path}/conversations")).json()["data"][0]
    for _ in range(2):
        again = await _last_answer(talk, conversation["id"])
        await send_chat(talk.client, talk, "Hi", **again)
    assert await _list_texts(talk, conversation["id"]) == [("Hi", "complete"), ("Now.", "complete")]


async def test_an_answer_stays_when_the_new_one_fails(talk: Talker) -> None:
    conversation_id = await _start(talk)
    again = await _last_answer(talk, conversation_id)
    talk.script(Reply(status=400), Reply(texts=["better"]), Reply(texts=["c"]))
    await send_chat(talk.client, talk, "2, please", **again)
    texts = await _list_texts(talk, conversation_id)
    assert texts[2:] == [("2", "complete"), ("b", "complete")]
    # The log tells of the failure.
    entries = await list_log_entries(talk, type="message", conversation_id=conversation_id)
    assert [entry["content"] for entry in entries[:2]] == ["", "2, please"]
    # It can be tried again.
    assert await _last_answer(talk, conversation_id) == again
    await talk.say("2, please", **again)
    assert (await _list_texts(talk, conversation_id))[2:] == [
        ("2, please", "complete"),
        ("better", "complete"),
    ]
    await talk.say("3", conversation_id=conversation_id)
    asked = [item["content"] for item in talk.asked[-1]["messages"][1:]]
    assert asked == ["1", "a", "2, please", "better", "3"]


async def test_a_job_replaces_the_last_turn(talk: Talker, services: Services) -> None:
    conversation_id = await _start(talk)
    await run_new_job(talk, services, "2", **await _last_answer(talk, conversation_id))
    texts = await _list_texts(talk, conversation_id)
    assert texts[2:] == [("2", "complete"), ("better", "complete")]
    asked = [item["content"] for item in talk.asked[-1]["messages"][1:]]
    assert asked == ["1", "a", "2"]


async def test_a_job_that_fails_leaves_the_answer_that_it_was_to_replace(
    talk: Talker, services: Services
) -> None:
    conversation_id = await _start(talk)
    talk.script(Reply(status=400))
    await run_new_job(talk, services, "2", **await _last_answer(talk, conversation_id))
    assert (await _list_texts(talk, conversation_id))[2:] == [
        ("2", "complete"),
        ("b", "complete"),
        ("2", "complete"),
        ("", "failed"),
    ]


async def test_only_the_last_answer_can_be_replaced(
    talk: Talker, subtests: pytest.Subtests
) -> None:
    conversation_id = await _start(talk)
    messages = await list_messages(talk, conversation_id)
    for name, message_id in (
        ("an earlier answer", messages[1]["id"]),
        ("a question", messages[2]["id"]),
        ("an unknown message", "msg_unknown"),
    ):
        with subtests.test(name):
            body = {"conversation_id": conversation_id, "replaces": message_id}
            refused(await send_chat(talk.client, talk, "2", **body), 409, "not_last_answer")
    # The conversation is free.
    await talk.say("3", conversation_id=conversation_id)
    assert len(await _list_texts(talk, conversation_id)) == 6


async def test_a_new_conversation_has_nothing_to_replace(talk: Talker) -> None:
    answer = await send_chat(talk.client, talk, "Hi", replaces="msg_unknown")
    details = refused(answer, 422, "validation_error")["details"]
    assert details == {"replaces": "needs the conversation_id of that answer"}
    assert await count_conversations(talk) == 0


async def test_a_visitor_tries_again(talk: Talker) -> None:
    visitor = await visit(await create_site(talk))
    talk.script(Reply(status=400), Reply(texts=["Now."]))
    await visitor.ask("Hi")
    failed = (await visitor.load())["messages"][1]
    assert (await visitor.ask("Hi", replaces=failed["id"])).status_code == 200
    messages = (await visitor.load())["messages"]
    assert [item["content"] for item in messages] == ["Hi", "Now."]


async def test_a_visitor_without_messages_has_nothing_to_replace(talk: Talker) -> None:
    visitor = await visit(await create_site(talk))
    refused(await visitor.ask("Hi", replaces="msg_unknown"), 409, "not_last_answer")
    assert await count_conversations(talk) == 0
