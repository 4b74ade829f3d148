"""Answers that the OpenAI adapter reads: texts, tool calls and used tokens."""

import asyncio
import json
from contextlib import aclosing

import pytest

from app.domain.agents.llm.openai_adapter import OpenAIAdapter
from app.domain.agents.llm.protocol import Accepted, Finished, Refusal, Text, ToolCall, UsedTokens
from tests.agents.llm.answers import STREAMED_AND_WHOLE, StepHold, calls_of, make_request, text_of
from tests.agents.llm.openai_provider import (
    DONE,
    JSON,
    SSE,
    STOP,
    encode_delta,
    encode_event,
    make_target,
    request_parts,
    serve_packets,
)
from tests.model_server import ModelServer, Reply


async def test_a_stream_is_passed_on_in_the_provider_s_parts(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    hold = StepHold(steps=1)
    models.script("pieces", Reply(texts=["One", ", ", "two"], hold=hold, usage=(40, 8)))
    target = make_target(models.url, "scripted/pieces")
    parts = []
    async with aclosing(adapter.answer(target, make_request())) as answer:
        async for part in answer:
            parts.append(part)
            if isinstance(part, Text):
                hold.release()
    texts = [Text("One"), Text(", "), Text("two")]
    assert parts == [Accepted(), *texts, UsedTokens(40, 8), Finished("stop")]


async def test_a_whole_answer_is_one_text_and_its_usage(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    models.script("whole", Reply(texts=["One", ", ", "two"], usage=(40, 8)))
    parts = await request_parts(
        adapter, make_target(models.url, "scripted/whole"), is_streamed=False
    )
    assert parts == [Text("One, two"), UsedTokens(40, 8)]


async def test_a_part_is_passed_on_before_the_next_one_exists(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    hold = StepHold(steps=1)
    models.script("held", Reply(texts=["first", "second"], hold=hold))
    async with aclosing(
        adapter.answer(make_target(models.url, "scripted/held"), make_request())
    ) as parts:
        async with asyncio.timeout(5):
            assert await anext(parts) == Accepted()
            assert await anext(parts) == Text("first")
        hold.release()
        rest = [Text("second"), UsedTokens(11, 7), Finished("stop")]
        assert [part async for part in parts] == rest


async def test_an_answer_without_usage_has_no_used_tokens(
    adapter: OpenAIAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for is_streamed in STREAMED_AND_WHOLE:
        with subtests.test(is_streamed=is_streamed):
            models.script("no-usage", Reply(texts=["Yes"], usage=None))
            parts = await request_parts(
                adapter, make_target(models.url, "scripted/no-usage"), is_streamed=is_streamed
            )
            assert parts == [Text("Yes")]


async def test_a_tool_call_arrives_whole(
    adapter: OpenAIAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for is_streamed in STREAMED_AND_WHOLE:
        with subtests.test(is_streamed=is_streamed):
            models.script(
                "call", Reply(texts=[], calls=[("weather", {"at": "Ulm", "days": [1, 2]})])
            )
            calls = calls_of(
                await request_parts(
                    adapter, make_target(models.url, "scripted/call"), is_streamed=is_streamed
                )
            )
            assert calls == [ToolCall("call_0", "weather", '{"at": "Ulm", "days": [1, 2]}')]


async def test_parallel_calls_are_separate_and_in_order(
    adapter: OpenAIAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for is_streamed in STREAMED_AND_WHOLE:
        with subtests.test(is_streamed=is_streamed):
            calls = [("weather", {"at": town}) for town in ("Ulm", "Bonn", "Kiel")]
            models.script("calls", Reply(texts=["Let me see."], calls=calls))
            parts = await request_parts(
                adapter, make_target(models.url, "scripted/calls"), is_streamed=is_streamed
            )
            assert text_of(parts) == "Let me see."
            assert [(call.id, json.loads(call.arguments)["at"]) for call in calls_of(parts)] == [
                ("call_0", "Ulm"),
                ("call_1", "Bonn"),
                ("call_2", "Kiel"),
            ]


async def test_fragments_of_several_calls_may_be_mixed(adapter: OpenAIAdapter) -> None:
    events = [
        encode_delta(tool_calls=[{"index": 1, "id": "b", "function": {"name": "two"}}]),
        encode_delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "one"}}]),
        encode_delta(tool_calls=[{"index": 0, "function": {"arguments": '{"x"'}}]),
        encode_delta(tool_calls=[{"index": 1, "function": {"arguments": '{"y"'}}]),
        encode_delta(
            tool_calls=[
                {"index": 0, "function": {"arguments": ": 1}"}},
                {"index": 1, "function": {"arguments": ": 2}"}},
            ]
        ),
    ]
    async with serve_packets(SSE, *events, STOP, DONE) as url:
        parts = await request_parts(adapter, make_target(url))
    assert parts == [ToolCall("a", "one", '{"x": 1}'), ToolCall("b", "two", '{"y": 2}')]


async def test_a_call_without_an_id_gets_one(adapter: OpenAIAdapter) -> None:
    fragment = {"index": 3, "function": {"name": "weather", "arguments": "{}"}}
    async with serve_packets(SSE, encode_delta(tool_calls=[fragment]), STOP, DONE) as url:
        (call,) = calls_of(await request_parts(adapter, make_target(url)))
    assert call.id
    assert (call.name, call.arguments) == ("weather", "{}")


async def test_arguments_that_are_no_json_are_left_as_they_are(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    models.script("odd", Reply(texts=[], calls=[("weather", '{"at": "Ul')]))
    (call,) = calls_of(await request_parts(adapter, make_target(models.url, "scripted/odd")))
    assert call.arguments == '{"at": "Ul'


async def test_nul_characters_are_dropped(
    adapter: OpenAIAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for is_streamed in STREAMED_AND_WHOLE:
        with subtests.test(is_streamed=is_streamed):
            reply = Reply(texts=["a\0b", "\0c"], calls=[("f", '{"x": "\0y"}')])
            models.script("nul", reply)
            parts = await request_parts(
                adapter, make_target(models.url, "scripted/nul"), is_streamed=is_streamed
            )
            assert text_of(parts) == "abc"
            assert calls_of(parts)[0].arguments == '{"x": "y"}'


async def test_a_refusal_in_words_is_a_refusal(
    adapter: OpenAIAdapter, subtests: pytest.Subtests
) -> None:
    for is_streamed in STREAMED_AND_WHOLE:
        with subtests.test(is_streamed=is_streamed):
            content = {"content": None, "refusal": "I cannot help with that."}
            choice = {"delta" if is_streamed else "message": content, "finish_reason": "stop"}
            body = (
                encode_event(choices=[choice]) + DONE
                if is_streamed
                else json.dumps({"choices": [choice]}).encode()
            )
            async with serve_packets(SSE if is_streamed else JSON, body) as url:
                assert await request_parts(adapter, make_target(url), is_streamed=is_streamed) == [
                    Refusal("I cannot help with that.")
                ]


async def test_only_the_first_of_several_choices_counts(adapter: OpenAIAdapter) -> None:
    choices = [{"delta": {"content": text}, "finish_reason": "stop"} for text in ("one", "two")]
    async with serve_packets(SSE, encode_event(choices=choices), DONE) as url:
        assert await request_parts(adapter, make_target(url)) == [Text("one")]


async def test_unknown_fields_are_ignored(adapter: OpenAIAdapter) -> None:
    events = [
        encode_event(
            id="x", object="chat.completion.chunk", usage=None, choices=[], x_more={"a": [1]}
        ),
        encode_delta(role="assistant", content=None, tool_calls=None),
        encode_delta(content="", reasoning_content="Hm."),
        encode_delta(content="Yes"),
    ]
    async with serve_packets(SSE, *events, STOP, DONE) as url:
        assert await request_parts(adapter, make_target(url)) == [Text("Yes")]


async def test_a_whole_answer_is_accepted_instead_of_a_stream(
    adapter: OpenAIAdapter, subtests: pytest.Subtests
) -> None:
    for is_streamed in STREAMED_AND_WHOLE:
        with subtests.test(is_streamed=is_streamed):
            answer = {"choices": [{"message": {"content": "Whole"}, "finish_reason": "stop"}]}
            async with serve_packets(JSON, json.dumps(answer).encode()) as url:
                assert await request_parts(adapter, make_target(url), is_streamed=is_streamed) == [
                    Text("Whole")
                ]
