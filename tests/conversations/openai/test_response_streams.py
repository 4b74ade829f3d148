"""The typed events of streamed responses."""

from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.conversations.openai.test_responses import CLOCK, ask
from tests.model_server import Reply
from tests.scripted_agents import Talker


async def _read(talk: Talker, client: AsyncOpenAI, **more: Any) -> list[Any]:
    return [event async for event in await ask(talk, client, stream=True, **more)]


async def test_a_stream_builds_its_response(talk: Talker, any_client: AsyncOpenAI) -> None:
    events = await _read(talk, any_client)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events if not event.type.endswith("text.delta")] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    response = events[-1].response
    assert "".join(deltas) == response.output_text == "Hello there"
    assert response.id == events[0].response.id
    assert response.usage.total_tokens == 18
    assert {event.item_id for event in events if hasattr(event, "item_id")} == {
        response.output[0].id
    }


async def test_a_stream_has_the_calls_of_functions(talk: Talker, any_client: AsyncOpenAI) -> None:
    calls = [("clock", {"zone": "UTC"}), ("clock", {})]
    talk.script(Reply(texts=["Let me look."], calls=calls))
    events = await _read(talk, any_client, tools=[CLOCK])
    done = [event for event in events if event.type == "response.output_item.done"]
    assert [event.output_index for event in done] == [0, 1, 2]
    assert [event.item.type for event in done] == ["message", "function_call", "function_call"]
    arguments = [
        event.arguments for event in events if event.type == "response.function_call_arguments.done"
    ]
    assert arguments == ['{"zone": "UTC"}', "{}"]
    final = events[-1].response
    assert [item.id for item in final.output] == [event.item.id for event in done]


async def test_a_stream_of_the_sdk_ends_with_its_response(
    talk: Talker, client: AsyncOpenAI
) -> None:
    async with client.responses.stream(model=talk.agent_id, input="Hi") as stream:
        response = await stream.get_final_response()
    assert response.output_text == "Hello there"


async def test_a_stream_that_was_cut_off_is_incomplete(talk: Talker, client: AsyncOpenAI) -> None:
    talk.script(Reply(finish_reason="length"))
    *_, item_done, last = await _read(talk, client)
    assert item_done.item.status == "incomplete"
    assert (last.type, last.response.incomplete_details.reason) == (
        "response.incomplete",
        "max_output_tokens",
    )


async def test_a_failure_before_the_first_byte_has_its_status(
    talk: Talker, client: AsyncOpenAI
) -> None:
    talk.script(Reply(status=429, headers={"Retry-After": "7"}))
    with pytest.raises(openai.RateLimitError) as refusal:
        await _read(talk, client)
    assert refusal.value.response.headers["retry-after"] == "7"
    assert len(talk.asked) == 1


async def test_a_failure_in_the_middle_ends_the_stream(talk: Talker, client: AsyncOpenAI) -> None:
    talk.script(Reply(texts=["Half", " lost"], error_after=1))
    *_, error, failed = await _read(talk, client)
    assert (error.type, failed.type) == ("error", "response.failed")
    assert error.message == failed.response.error.message
    stored = await client.responses.retrieve(failed.response.id)
    assert (stored.status, stored.output_text) == ("failed", "Half")
    assert [item.status for item in stored.output] == ["incomplete"]


async def test_a_call_that_was_cut_off_is_incomplete(talk: Talker, client: AsyncOpenAI) -> None:
    calls = [("clock", {"zone": "UTC"}), ("clock", '{"zo')]
    talk.script(Reply(texts=[], calls=calls, finish_reason="length"))
    events = await _read(talk, client, tools=[CLOCK])
    done = [event.item.status for event in events if event.type == "response.output_item.done"]
    assert done == ["completed", "incomplete"]
    assert [item.status for item in events[-1].response.output] == done


async def test_a_stream_has_the_refusal(talk: Talker, client: AsyncOpenAI) -> None:
    talk.script(Reply(is_refusal=True, texts=["I will", " not."]))
    events = await _read(talk, client)
    assert [event.type for event in events[2:-1] if not event.type.endswith(".delta")] == [
        "response.output_item.added",
        "response.content_part.added",
        "response.refusal.done",
        "response.content_part.done",
        "response.output_item.done",
    ]
    deltas = [event.delta for event in events if event.type == "response.refusal.delta"]
    final = events[-1].response
    assert "".join(deltas) == final.output[0].content[0].refusal == "I will not."
    assert (await client.responses.retrieve(final.id)).output == final.output
