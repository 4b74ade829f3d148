"""Responses that are read again, deleted, or prepared in the background."""

from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from app.services import Services
from tests.conversations.chat.conversation_helpers import (
    list_event_data,
    list_ids,
    list_messages,
)
from tests.conversations.chat.job_helpers import run_job
from tests.conversations.openai.completions import code_of, model_messages
from tests.conversations.openai.test_responses import CLOCK, ask, calls_of, output_for
from tests.model_server import Reply
from tests.scripted_agents import Talker


async def run_answer(services: Services, response: Any) -> None:
    await run_job(services, {"job_id": response.id.replace("resp_", "job_")})


async def test_a_response_is_read_again(talk: Talker, client: AsyncOpenAI) -> None:
    talk.script(Reply(texts=["Let me look."], calls=[("clock", {"zone": "UTC"})]))
    response = await ask(talk, client, tools=[CLOCK], metadata={"order": "42"}, temperature=0.3)
    assert await client.responses.retrieve(response.id) == response


async def test_a_deleted_response_takes_its_question_along(
    talk: Talker, client: AsyncOpenAI
) -> None:
    first = await ask(talk, client, "First")
    second = await ask(talk, client, "Second", previous_response_id=first.id)
    await client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError) as refusal:
        await client.responses.retrieve(first.id)
    assert code_of(refusal.value) == "response_not_found"
    messages = await list_messages(talk, first.conversation.id)
    assert [item["content"] for item in messages] == ["Second", "Hello there"]
    said = await list_event_data(talk, "agent.chat.message")
    assert "First" not in [event["content"] for event in said]
    await ask(talk, client, "Third", previous_response_id=second.id)
    assert [content for _, content in model_messages(talk)] == [
        "You are a test.",
        "Second",
        "Hello there",
        "Third",
    ]


async def test_the_last_response_takes_its_conversation_along(
    talk: Talker, client: AsyncOpenAI
) -> None:
    response = await ask(talk, client)
    await client.responses.delete(response.id)
    assert await list_ids(talk) == []


async def test_a_response_of_somebody_else_is_not_found(
    talk: Talker, client: AsyncOpenAI, subtests: pytest.Subtests
) -> None:
    response = await ask(talk, client)
    colleague = await talk.world.user("tenant_admin", tenant_id=talk.client.tenant_id)
    path = f"/v1/responses/{response.id}"
    for method, target in (("GET", path), ("DELETE", path), ("POST", f"{path}/cancel")):
        with subtests.test(method=method):
            answer = await colleague(method, target)
            assert answer.status_code == 404
    assert await client.responses.retrieve(response.id)


async def test_a_response_in_the_background_is_prepared_by_a_worker(
    talk: Talker, client: AsyncOpenAI, services: Services
) -> None:
    talk.script(Reply(texts=["Looking."], calls=[("clock", {})]), Reply(texts=["It is 9."]))
    first = await ask(talk, client, background=True, tools=[CLOCK], top_p=0.5)
    assert (first.status, first.output) == ("queued", [])
    assert (await client.responses.retrieve(first.id)).status == "queued"
    await run_answer(services, first)
    first = await client.responses.retrieve(first.id)
    assert (first.status, first.output_text, len(calls_of(first))) == ("completed", "Looking.", 1)
    assert talk.asked[0]["top_p"] == 0.5
    second = await ask(
        talk, client, output_for(first), previous_response_id=first.id, background=True
    )
    await run_answer(services, second)
    second = await client.responses.retrieve(second.id)
    assert second.output_text == "It is 9."
    assert talk.asked[1]["messages"][-1]["content"] == "09:00"
    messages = await list_messages(talk, first.conversation.id)
    assert [item["content"] for item in messages] == ["Hi", "Looking.", "It is 9."]


async def test_a_response_in_the_background_is_cancelled(
    talk: Talker, client: AsyncOpenAI, services: Services
) -> None:
    response = await ask(talk, client, background=True)
    cancelled = await client.responses.cancel(response.id)
    assert cancelled.status == "cancelled"
    await run_answer(services, response)
    assert talk.asked == []
    assert (await client.responses.cancel(response.id)).status == "cancelled"


async def test_only_a_response_in_the_background_can_be_cancelled(
    talk: Talker, client: AsyncOpenAI
) -> None:
    response = await ask(talk, client)
    with pytest.raises(openai.ConflictError):
        await client.responses.cancel(response.id)


async def test_a_failure_in_the_background_is_told(
    talk: Talker, client: AsyncOpenAI, services: Services
) -> None:
    talk.script(Reply(status=400, message="bad request"))
    response = await ask(talk, client, background=True)
    await run_answer(services, response)
    failed = await client.responses.retrieve(response.id)
    assert failed.status == "failed"
    assert failed.error is not None
    assert "bad request" in failed.error.message


async def test_a_running_response_is_not_deleted(talk: Talker, client: AsyncOpenAI) -> None:
    response = await ask(talk, client, background=True)
    with pytest.raises(openai.ConflictError) as refusal:
        await client.responses.delete(response.id)
    assert code_of(refusal.value) == "conversation_busy"
