"""A turn that fails stays where people look for it: conversation, log, events, trace, figures."""

from typing import Any

import pytest

from app.kit.ids import new_id
from app.services import Services
from tests.assertions import refused
from tests.conversations.chat.conversation_helpers import (
    list_conversations,
    list_event_data,
    list_ids,
    list_messages,
    send_chat,
)
from tests.conversations.chat.job_helpers import run_new_job
from tests.conversations.chat.log_helpers import get_stats, list_log_entries, set_log_settings
from tests.conversations.embed.sites import create_site
from tests.conversations.embed.visits import visit
from tests.model_server import Reply
from tests.platform.events.api import read_trace
from tests.platform.events.database import wait_for_request_span
from tests.scripted_agents import Talker


def _refusal() -> Reply:
    return Reply(status=400, message="no such deployment")


async def _fail(talk: Talker, message: str = "Lost", **more: Any) -> dict[str, Any]:
    talk.script(_refusal(), Reply(texts=["Back"]))
    return refused(await send_chat(talk.client, talk, message, **more), 400, "provider_rejected")


async def test_the_question_and_the_failure_stay_in_the_conversation(talk: Talker) -> None:
    error = await _fail(talk)
    [conversation] = (await list_conversations(talk))["data"]
    assert (conversation["title"], conversation["message_count"]) == ("Lost", 2)
    question, answer = await list_messages(talk, conversation["id"])
    assert (question["role"], question["content"], question["error"]) == ("user", "Lost", None)
    assert (answer["role"], answer["content"], answer["status"]) == ("assistant", "", "failed")
    assert answer["error"] == {"code": "provider_rejected", "message": error["message"]}
    assert "no such deployment" in answer["error"]["message"]


async def test_the_next_turn_sees_the_question_that_was_not_answered(talk: Talker) -> None:
    await _fail(talk)
    [conversation_id] = await list_ids(talk)
    reply = await talk.say("Hello?", conversation_id=conversation_id)
    assert reply["message"]["content"] == "Back"
    assert talk.asked[-1]["messages"][1:] == [{"role": "user", "content": "Lost\n\nHello?"}]


async def test_the_same_question_again_is_asked_once(talk: Talker) -> None:
    await _fail(talk)
    [conversation_id] = await list_ids(talk)
    await talk.say("Lost", conversation_id=conversation_id)
    assert talk.asked[-1]["messages"][1:] == [{"role": "user", "content": "Lost"}]


async def test_an_event_tells_of_the_failure(talk: Talker) -> None:
    await _fail(talk)
    [conversation_id] = await list_ids(talk)
    failed = (await list_messages(talk, conversation_id))[1]
    assert await list_event_data(talk, "agent.chat.failed") == [
        {
            "agent_id": talk.agent_id,
            "conversation_id": conversation_id,
            "message_id": failed["id"],
            "source": "console",
            "code": "provider_rejected",
            "reason": "refused",
        }
    ]
    said = await list_event_data(talk, "agent.chat.message")
    assert [(data["role"], data["content"]) for data in said] == [("user", "Lost")]


async def test_the_log_has_the_failure_even_where_messages_are_not_logged(
    talk: Talker, subtests: pytest.Subtests
) -> None:
    for is_logged, roles in ((True, ["assistant", "user"]), (False, ["assistant"])):
        with subtests.test(is_logged=is_logged):
            await set_log_settings(talk, log_messages=is_logged)
            await _fail(talk)
            conversation_id = (await list_ids(talk))[0]
            entries = await list_log_entries(talk, type="message", conversation_id=conversation_id)
            assert [entry["role"] for entry in entries] == roles
            assert entries[0]["data"]["error"]["code"] == "provider_rejected"


async def test_the_figures_count_it(talk: Talker, services: Services) -> None:
    await _fail(talk)
    await talk.say("Hi")
    talk.script(_refusal())
    await run_new_job(talk, services, "Lost")
    stats = await get_stats(talk)
    assert (stats["failed_turns"], stats["total_messages"]) == (2, 6)
    assert stats["total_conversations"] == 3


async def test_its_spans_are_failed(talk: Talker, services: Services) -> None:
    talk.script(_refusal())
    ids = {"X-Correlation-ID": new_id("cor"), "X-Request-ID": new_id("req")}
    await talk.client.post(f"{talk.path}/chat", {"message": "Hi"}, headers=ids)
    await wait_for_request_span(services, ids["X-Request-ID"])
    spans = (await read_trace(talk.client, ids["X-Correlation-ID"]))["spans"]
    assert [(span["kind"], span["name"], span["status"]) for span in spans] == [
        ("request", f"POST {talk.path}/chat", "failed"),
        ("model", f"scripted/{talk.model}", "failed"),
    ]


async def test_a_failed_job_stays_in_its_conversation(talk: Talker, services: Services) -> None:
    talk.script(_refusal())
    job = await run_new_job(talk, services, "Lost")
    question, answer = await list_messages(talk, job["conversation_id"])
    assert (question["content"], answer["content"]) == ("Lost", "")
    assert answer["status"] == "failed"
    assert answer["error"]["message"] == job["error"]["message"]
    [failed] = await list_event_data(talk, "agent.chat.failed")
    assert (failed["source"], failed["message_id"]) == ("async", answer["id"])


async def test_visitors_read_that_it_failed_and_nothing_of_the_provider(talk: Talker) -> None:
    visitor = await visit(await create_site(talk))
    talk.script(_refusal())
    assert (await visitor.ask("Lost")).status_code == 502
    question, answer = (await visitor.load())["messages"]
    assert (question["content"], answer["status"]) == ("Lost", "failed")
    assert answer["error"] == {
        "code": "provider_error",
        "message": "The agent cannot answer right now; try again later",
    }
