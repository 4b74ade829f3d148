"""OpenAI's wire format, byte by byte: what comes through, what is told of what does not."""

import asyncio
import gzip
import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import msgspec
import pytest

from app.domain.models import openai_adapter as wires
from app.domain.models.errors import ModelFailed
from app.domain.models.openai_adapter import OpenAIAdapter
from app.domain.models.protocol import (
    AnswerPart,
    Function,
    Message,
    ModelRequest,
    Target,
    Text,
    ToolCall,
    UsedTokens,
)
from app.domain.models.provider_failures import MAX_TOOL_CALLS
from app.kit.egress import Egress, EgressTimeout, Guard
from tests.model_server import ModelServer, Reply
from tests.ports import free_port

KEY = "sk-live-0123456789abcdef"
HELLO = [Message("user", "Hello")]
MIB = 1024 * 1024
SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
DONE = b"data: [DONE]\n\n"
STOP = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'
DEEP = b"[" * 100_000

Packets = Sequence[bytes]
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
async def wire() -> AsyncIterator[OpenAIAdapter]:
    made = OpenAIAdapter(Egress(Guard(("127.0.0.1",)), limit=0, per_host=0))
    yield made
    await made.close()


@asynccontextmanager
async def _listening(handler: Handler) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (
                    int(line.partition(b":")[2])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length:")
                ),
                0,
            )
            await reader.readexactly(length)
            await handler(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def _sending(*packets: bytes) -> AsyncIterator[str]:
    """A provider that answers with exactly these packets, and then closes."""

    async def handle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for packet in packets:
            writer.write(packet)
            await writer.drain()
            # The other side reads what is there before the next packet joins it.
            await asyncio.sleep(0.0005)

    async with _listening(handle) as url:
        yield url


def _target(url: str, model: str = "scripted/one", provider: str = "scripted") -> Target:
    return Target(model, provider, KEY, url)


def _ask(**fields: Any) -> ModelRequest:
    return ModelRequest(**{"messages": HELLO, **fields})


async def _pieces(wire: OpenAIAdapter, target: Target, **fields: Any) -> list[AnswerPart]:
    async with aclosing(wire.answer(target, _ask(**fields))) as pieces:
        return _joined([piece async for piece in pieces])


def _joined(pieces: Sequence[AnswerPart]) -> list[AnswerPart]:
    """With neighbouring texts as one: how many packets they came in is the network's affair."""
    found: list[AnswerPart] = []
    for piece in pieces:
        if isinstance(piece, Text) and found and isinstance(last := found[-1], Text):
            found[-1] = Text(last.text + piece.text)
        else:
            found.append(piece)
    return found


async def _failure(
    wire: OpenAIAdapter, target: Target, **fields: Any
) -> tuple[ModelFailed, list[AnswerPart]]:
    """What went wrong, and what had come before."""
    before: list[AnswerPart] = []
    try:
        async with aclosing(wire.answer(target, _ask(**fields))) as pieces:
            async for piece in pieces:
                before.append(piece)  # noqa: PERF401  # what came before the error counts
    except ModelFailed as error:
        return error, before
    raise AssertionError(f"nothing failed: {before}")


def _event(**chunk: Any) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def _delta(**delta: Any) -> bytes:
    return _event(choices=[{"delta": delta, "finish_reason": None}])


def _said(pieces: list[AnswerPart]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Text))


def _calls(pieces: list[AnswerPart]) -> list[ToolCall]:
    return [piece for piece in pieces if isinstance(piece, ToolCall)]


async def _eventually(condition: Callable[[], bool], seconds: float = 5) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


STREAMED_AND_WHOLE = pytest.mark.parametrize("is_streamed", [True, False], ids=["stream", "whole"])


# What is asked


async def _asked(
    wire: OpenAIAdapter, models: ModelServer, target: Target, **fields: Any
) -> dict[str, Any]:
    before = len(models.requests)
    await _pieces(wire, target, **fields)
    assert len(models.requests) == before + 1
    return models.requests[-1]


async def test_the_provider_is_asked_for_the_model_without_its_prefix(
    wire: OpenAIAdapter, models: ModelServer
) -> None:
    asked = await _asked(wire, models, _target(models.url, "scripted/family/big"))
    assert asked["model"] == "family/big"


async def test_the_key_goes_along_as_a_bearer_token(
    wire: OpenAIAdapter, models: ModelServer
) -> None:
    await _pieces(wire, _target(models.url))
    assert models.headers[-1]["Authorization"] == f"Bearer {KEY}"
    assert models.headers[-1]["Content-Type"] == "application/json"


async def test_without_a_key_no_authorization_is_sent(
    wire: OpenAIAdapter, models: ModelServer
) -> None:
    await _pieces(wire, Target("one", "", base_url=models.url))
    assert "Authorization" not in models.headers[-1]


async def test_a_base_url_may_end_in_a_slash(wire: OpenAIAdapter, models: ModelServer) -> None:
    assert _said(await _pieces(wire, _target(f"{models.url}/"))) == "Hello there"


async def test_a_stream_is_asked_for_with_its_usage(
    wire: OpenAIAdapter, models: ModelServer
) -> None:
    asked = await _asked(wire, models, _target(models.url))
    assert asked["stream"] is True
    assert asked["stream_options"] == {"include_usage": True}


async def test_a_whole_answer_is_asked_for_without_a_stream(
    wire: OpenAIAdapter, models: ModelServer
) -> None:
    asked = await _asked(wire, models, _target(models.url), is_streamed=False)
    assert "stream" not in asked
    assert "stream_options" not in asked


async def test_temperature_and_limit_are_told(wire: OpenAIAdapter, models: ModelServer) -> None:
    asked = await _asked(wire, models, _target(models.url), temperature=0.25, max_tokens=99)
    assert (asked["temperature"], asked["max_tokens"]) == (0.25, 99)
    assert "max_completion_tokens" not in asked


async def test_openai_itself_is_told_the_limit_in_its_newer_word(
    wire: OpenAIAdapter, models: ModelServer
) -> None:
    asked = await _asked(wire, models, _target(models.url, "openai/gpt-4o", "openai"))
    assert asked["max_completion_tokens"] == 2048
    assert asked["temperature"] == 0.7
    assert "max_tokens" not in asked


@pytest.mark.parametrize("name", ["o1", "o3-mini", "o4-mini", "gpt-5", "gpt-5-nano"])
async def test_openais_reasoning_models_are_told_no_temperature(
    wire: OpenAIAdapter, models: ModelServer, name: str
) -> None:
    assert "temperature" not in await _asked(
        wire, models, _target(models.url, f"openai/{name}", "openai")
    )
    assert "temperature" in await _asked(wire, models, _target(models.url, f"scripted/{name}"))


async def test_messages_keep_their_roles_calls_and_order(
    wire: OpenAIAdapter, models: ModelServer
) -> None:
    messages = [
        Message("system", "Be brief."),
        Message("user", "Weather?"),
        Message("assistant", "", (ToolCall("call_7", "weather", '{"at": "Ulm"}'),)),
        Message("tool", "rain", tool_call_id="call_7"),
    ]
    asked = await _asked(wire, models, _target(models.url), messages=messages)
    call = {
        "id": "call_7",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"at": "Ulm"}'},
    }
    assert asked["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "rain", "tool_call_id": "call_7"},
    ]


async def test_functions_and_the_form_of_the_answer_are_told(
    wire: OpenAIAdapter, models: ModelServer
) -> None:
    parameters = {"type": "object", "properties": {"at": {"type": "string"}}}
    function = Function("weather", "Tells the weather", parameters)
    form = {"type": "json_object"}
    asked = await _asked(
        wire, models, _target(models.url), functions=(function,), response_format=form
    )
    assert asked["tools"] == [{"type": "function", "function": msgspec.to_builtins(function)}]
    assert asked["response_format"] == form


async def test_functions_that_may_not_be_called_are_named_all_the_same(
    wire: OpenAIAdapter, models: ModelServer
) -> None:
    functions = (Function("weather", "Tells the weather", {"type": "object"}),)
    target = _target(models.url)
    asked = await _asked(wire, models, target, functions=functions, may_call=False)
    assert asked["tool_choice"] == "none"
    assert asked["tools"][0]["function"]["name"] == "weather"
    assert "tool_choice" not in await _asked(wire, models, target, functions=functions)


async def test_nothing_is_said_of_functions_where_there_are_none(
    wire: OpenAIAdapter, models: ModelServer
) -> None:
    asked = await _asked(wire, models, _target(models.url))
    assert not {"tools", "tool_choice", "response_format"} & set(asked)


# What comes back


async def test_a_stream_is_passed_on_in_the_provider_s_own_pieces(
    wire: OpenAIAdapter, models: ModelServer
) -> None:
    models.script("pieces", Reply(texts=["One", ", ", "two"], delay=0.05, usage=(40, 8)))
    target = _target(models.url, "scripted/pieces")
    async with aclosing(wire.answer(target, _ask())) as answer:
        found = [piece async for piece in answer]
    assert found == [Text("One"), Text(", "), Text("two"), UsedTokens(40, 8)]


async def test_a_whole_answer_is_one_text_and_its_usage(
    wire: OpenAIAdapter, models: ModelServer
) -> None:
    models.script("whole", Reply(texts=["One", ", ", "two"], usage=(40, 8)))
    found = await _pieces(wire, _target(models.url, "scripted/whole"), is_streamed=False)
    assert found == [Text("One, two"), UsedTokens(40, 8)]


async def test_a_piece_is_passed_on_before_the_next_one_exists(
    wire: OpenAIAdapter, models: ModelServer
) -> None:
    gate = asyncio.Semaphore(0)

    class Gate:
        wait = gate.acquire

    models.script("held", Reply(texts=["first", "second"], hold=Gate()))
    async with aclosing(wire.answer(_target(models.url, "scripted/held"), _ask())) as pieces:
        gate.release()
        async with asyncio.timeout(5):
            assert await anext(pieces) == Text("first")
        gate.release()
        assert [piece async for piece in pieces] == [Text("second"), UsedTokens(11, 7)]


@STREAMED_AND_WHOLE
async def test_an_answer_without_usage_tells_none(
    wire: OpenAIAdapter, models: ModelServer, *, is_streamed: bool
) -> None:
    models.script("no-usage", Reply(texts=["Yes"], usage=None))
    found = await _pieces(wire, _target(models.url, "scripted/no-usage"), is_streamed=is_streamed)
    assert found == [Text("Yes")]


@STREAMED_AND_WHOLE
async def test_a_tool_call_arrives_whole(
    wire: OpenAIAdapter, models: ModelServer, *, is_streamed: bool
) -> None:
    models.script("call", Reply(texts=[], calls=[("weather", {"at": "Ulm", "days": [1, 2]})]))
    found = _calls(
        await _pieces(wire, _target(models.url, "scripted/call"), is_streamed=is_streamed)
    )
    assert found == [ToolCall("call_0", "weather", '{"at": "Ulm", "days": [1, 2]}')]


@STREAMED_AND_WHOLE
async def test_calls_side_by_side_stay_apart_and_in_order(
    wire: OpenAIAdapter, models: ModelServer, *, is_streamed: bool
) -> None:
    calls = [("weather", {"at": town}) for town in ("Ulm", "Bonn", "Kiel")]
    models.script("calls", Reply(texts=["Let me see."], calls=calls))
    found = await _pieces(wire, _target(models.url, "scripted/calls"), is_streamed=is_streamed)
    assert _said(found) == "Let me see."
    assert [(call.id, json.loads(call.arguments)["at"]) for call in _calls(found)] == [
        ("call_0", "Ulm"),
        ("call_1", "Bonn"),
        ("call_2", "Kiel"),
    ]


async def test_fragments_of_several_calls_may_be_mixed(wire: OpenAIAdapter) -> None:
    events = [
        _delta(tool_calls=[{"index": 1, "id": "b", "function": {"name": "two"}}]),
        _delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "one"}}]),
        _delta(tool_calls=[{"index": 0, "function": {"arguments": '{"x"'}}]),
        _delta(tool_calls=[{"index": 1, "function": {"arguments": '{"y"'}}]),
        _delta(
            tool_calls=[
                {"index": 0, "function": {"arguments": ": 1}"}},
                {"index": 1, "function": {"arguments": ": 2}"}},
            ]
        ),
    ]
    async with _sending(SSE, *events, STOP, DONE) as url:
        found = await _pieces(wire, _target(url))
    assert found == [ToolCall("a", "one", '{"x": 1}'), ToolCall("b", "two", '{"y": 2}')]


async def test_a_call_without_an_id_gets_one(wire: OpenAIAdapter) -> None:
    fragment = {"index": 3, "function": {"name": "weather", "arguments": "{}"}}
    async with _sending(SSE, _delta(tool_calls=[fragment]), STOP, DONE) as url:
        (call,) = _calls(await _pieces(wire, _target(url)))
    assert call.id
    assert (call.name, call.arguments) == ("weather", "{}")


async def test_arguments_that_are_no_json_are_left_as_they_are(
    wire: OpenAIAdapter, models: ModelServer
) -> None:
    models.script("odd", Reply(texts=[], calls=[("weather", '{"at": "Ul')]))
    (call,) = _calls(await _pieces(wire, _target(models.url, "scripted/odd")))
    assert call.arguments == '{"at": "Ul'


@STREAMED_AND_WHOLE
async def test_nul_characters_are_dropped(
    wire: OpenAIAdapter, models: ModelServer, *, is_streamed: bool
) -> None:
    reply = Reply(texts=["a\0b", "\0c"], calls=[("f", '{"x": "\0y"}')])
    models.script("nul", reply)
    found = await _pieces(wire, _target(models.url, "scripted/nul"), is_streamed=is_streamed)
    assert _said(found) == "abc"
    assert _calls(found)[0].arguments == '{"x": "y"}'


@STREAMED_AND_WHOLE
async def test_a_refusal_in_words_is_the_text(wire: OpenAIAdapter, *, is_streamed: bool) -> None:
    content = {"content": None, "refusal": "I cannot help with that."}
    choice = {"delta" if is_streamed else "message": content, "finish_reason": "stop"}
    body = (
        _event(choices=[choice]) + DONE
        if is_streamed
        else json.dumps({"choices": [choice]}).encode()
    )
    async with _sending(SSE if is_streamed else JSON, body) as url:
        assert await _pieces(wire, _target(url), is_streamed=is_streamed) == [
            Text("I cannot help with that.")
        ]


async def test_only_the_first_of_several_choices_counts(wire: OpenAIAdapter) -> None:
    choices = [{"delta": {"content": text}, "finish_reason": "stop"} for text in ("one", "two")]
    async with _sending(SSE, _event(choices=choices), DONE) as url:
        assert await _pieces(wire, _target(url)) == [Text("one")]


async def test_what_a_provider_adds_of_its_own_is_ignored(wire: OpenAIAdapter) -> None:
    events = [
        _event(id="x", object="chat.completion.chunk", usage=None, choices=[], x_more={"a": [1]}),
        _delta(role="assistant", content=None, tool_calls=None),
        _delta(content="", reasoning_content="Hm."),
        _delta(content="Yes"),
    ]
    async with _sending(SSE, *events, STOP, DONE) as url:
        assert await _pieces(wire, _target(url)) == [Text("Yes")]


@STREAMED_AND_WHOLE
async def test_a_whole_answer_is_taken_although_a_stream_was_asked_for(
    wire: OpenAIAdapter, *, is_streamed: bool
) -> None:
    answer = {"choices": [{"message": {"content": "Whole"}, "finish_reason": "stop"}]}
    async with _sending(JSON, json.dumps(answer).encode()) as url:
        assert await _pieces(wire, _target(url), is_streamed=is_streamed) == [Text("Whole")]


# How it is packed


def _long_answer() -> tuple[list[bytes], list[AnswerPart]]:
    texts = ["Grüße", " aus ", "München 🥨", " — ", "bis bald"]
    fragment = {"index": 0, "id": "call_9", "function": {"name": "f", "arguments": '{"ü": "ß"}'}}
    chunk = {"choices": [{"delta": {"content": texts[2]}, "finish_reason": None}]}
    plain = b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"
    events = [
        b": keep-alive\n\n",
        *(_delta(content=text) for text in texts[:2]),
        plain,
        *(_delta(content=text) for text in texts[3:]),
        _delta(tool_calls=[fragment]),
        STOP,
        _event(choices=[], usage={"prompt_tokens": 3, "completion_tokens": 4}),
        DONE,
    ]
    pieces: list[AnswerPart] = [
        *map(Text, texts),
        UsedTokens(3, 4),
        ToolCall("call_9", "f", '{"ü": "ß"}'),
    ]
    return events, _joined(pieces)


async def test_many_events_in_one_packet_are_all_read(wire: OpenAIAdapter) -> None:
    events, pieces = _long_answer()
    async with _sending(SSE + b"".join(events)) as url:
        assert await _pieces(wire, _target(url)) == pieces


async def test_the_text_of_one_packet_is_one_piece(wire: OpenAIAdapter) -> None:
    """Whoever reads it gets it at one moment anyway, and each piece costs all the way to them."""
    said = b"".join(_delta(content=f"{number} ") for number in range(200))
    async with (
        _sending(SSE + said + STOP + DONE) as url,
        aclosing(wire.answer(_target(url), _ask())) as answer,
    ):
        pieces = [piece async for piece in answer]
    assert _joined(pieces) == [Text("".join(f"{number} " for number in range(200)))]
    assert len(pieces) < 10


async def test_what_came_before_a_failure_in_the_same_packet_is_passed_on(
    wire: OpenAIAdapter,
) -> None:
    broken = _event(error={"message": "I fell"})
    async with _sending(SSE + _delta(content="Half ") + _delta(content="a word") + broken) as url:
        error, before = await _failure(wire, _target(url))
    assert _joined(before) == [Text("Half a word")]
    assert "I fell" in error.message


async def test_a_connection_is_used_again_after_its_stream_ended(wire: OpenAIAdapter) -> None:
    """Also where the end of the response comes a moment after the last event."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    said = _delta(content="Yes") + STOP + DONE
    opened = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        while request := await reader.read(64 * 1024):
            if b"[" not in request:
                continue
            writer.write(head + b"\r\n%x\r\n%s\r\n" % (len(said), said))
            await writer.drain()
            await asyncio.sleep(0.02)
            writer.write(b"0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        for _ in range(3):
            assert await _pieces(wire, _target(url)) == [Text("Yes")]
        await wire.close()
    assert opened == 1


async def test_events_may_come_a_byte_at_a_time(wire: OpenAIAdapter) -> None:
    events, pieces = _long_answer()
    async with _sending(SSE, *(bytes([byte]) for byte in b"".join(events))) as url:
        assert await _pieces(wire, _target(url)) == pieces


@pytest.mark.parametrize("seed", range(8))
async def test_events_may_be_cut_anywhere(wire: OpenAIAdapter, seed: int) -> None:
    events, pieces = _long_answer()
    whole = b"".join(events)
    cuts = sorted(random.Random(seed).sample(range(1, len(whole)), 12))
    packets = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    async with _sending(SSE, *packets) as url:
        assert await _pieces(wire, _target(url)) == pieces


async def test_lines_may_end_in_cr_and_lf(wire: OpenAIAdapter) -> None:
    events, pieces = _long_answer()
    whole = b"".join(events).replace(b"\n", b"\r\n")
    # One cut is between the two.
    cut = whole.index(b"\r\n", 200) + 1
    async with _sending(SSE, whole[:cut], whole[cut:]) as url:
        assert await _pieces(wire, _target(url)) == pieces


async def test_the_space_after_data_may_be_missing(wire: OpenAIAdapter) -> None:
    events, pieces = _long_answer()
    async with _sending(SSE, b"".join(events).replace(b"data: ", b"data:")) as url:
        assert await _pieces(wire, _target(url)) == pieces


async def test_other_lines_of_an_event_are_ignored(wire: OpenAIAdapter) -> None:
    more = b"event: message\nid: 7\nretry: 10\n: a comment\ndata:\n\n"
    async with _sending(SSE, more + _delta(content="Yes"), more + STOP, more + DONE) as url:
        assert await _pieces(wire, _target(url)) == [Text("Yes")]


async def test_chunked_and_compressed_streams_are_read(wire: OpenAIAdapter) -> None:
    events, pieces = _long_answer()
    packed = gzip.compress(b"".join(events))
    head = SSE[:-2] + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    halves = [packed[:90], packed[90:]]
    chunks = [f"{len(half):x}\r\n".encode() + half + b"\r\n" for half in halves]
    async with _sending(head, *chunks, b"0\r\n\r\n") as url:
        assert await _pieces(wire, _target(url)) == pieces


async def test_an_answer_ends_with_its_last_event_not_with_the_connection(
    wire: OpenAIAdapter,
) -> None:
    still_open = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE + _delta(content="Yes") + STOP + DONE)
        await writer.drain()
        await reader.read()
        still_open.set()

    async with _listening(handle) as url, asyncio.timeout(5):
        assert await _pieces(wire, _target(url)) == [Text("Yes")]
        await still_open.wait()


async def test_nothing_after_the_last_event_counts(wire: OpenAIAdapter) -> None:
    async with _sending(SSE, STOP + DONE + _delta(content="more") + b"data: {broken\n\n") as url:
        assert await _pieces(wire, _target(url)) == []


async def test_who_stops_listening_stops_the_provider(
    wire: OpenAIAdapter, models: ModelServer
) -> None:
    never = asyncio.Event()
    gate = asyncio.Semaphore(1)

    class Gate:
        async def wait(self) -> None:
            if gate.locked():
                await never.wait()
            else:
                await gate.acquire()

    models.script("left", Reply(texts=["one", "two"], hold=Gate()))
    before = models.closed_early
    async with aclosing(wire.answer(_target(models.url, "scripted/left"), _ask())) as pieces:
        assert await anext(pieces) == Text("one")
    never.set()
    await _eventually(lambda: models.closed_early == before + 1)


# Refusals


@STREAMED_AND_WHOLE
@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (400, "refused"),
        (401, "refused"),
        (402, "refused"),
        (403, "refused"),
        (404, "refused"),
        (422, "refused"),
        (408, "timeout"),
        (504, "timeout"),
        (429, "rate_limited"),
        (500, "unavailable"),
        (502, "unavailable"),
        (503, "unavailable"),
        (529, "unavailable"),
    ],
)
async def test_a_refusal_has_a_reason_a_status_and_the_provider_s_words(
    wire: OpenAIAdapter, models: ModelServer, status: int, reason: str, *, is_streamed: bool
) -> None:
    models.script("refusing", Reply(status=status, message="not today"))
    error, before = await _failure(
        wire, _target(models.url, "scripted/refusing"), is_streamed=is_streamed
    )
    assert before == []
    assert error.reason == reason
    assert error.message == "scripted/refusing: not today"
    assert error.details == {
        "model": "scripted/refusing",
        "reason": reason,
        "provider_status": status,
    }
    assert (error.code, type(error).status) == ("provider_error", 502)


@pytest.mark.parametrize("status", [201, 204, 206, 301, 307])
async def test_any_status_but_200_is_a_refusal(wire: OpenAIAdapter, status: int) -> None:
    head = f"HTTP/1.1 {status} Odd\r\nContent-Length: 0\r\nLocation: /v1/elsewhere\r\n\r\n"
    async with _sending(head.encode()) as url:
        error, _ = await _failure(wire, _target(url))
    assert (error.reason, (error.details or {})["provider_status"]) == ("refused", status)
    assert error.message == f"scripted/one: the provider answered {status}"


async def test_a_redirect_takes_the_key_nowhere(wire: OpenAIAdapter, models: ModelServer) -> None:
    asked = len(models.requests)
    where = f"{models.url}/chat/completions"
    head = f"HTTP/1.1 308 Moved\r\nContent-Length: 0\r\nLocation: {where}\r\n\r\n"
    async with _sending(head.encode()) as url:
        await _failure(wire, _target(url))
    assert len(models.requests) == asked


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error": {"message": "no credit"}}', "no credit"),
        (b'{"error": "no credit"}', "no credit"),
        (b'{"message": "no credit"}', "no credit"),
        (b'"no credit"', "no credit"),
        (b'{"error": {"message": "a\\u0000b"}}', "ab"),
        (b'{"error": {"message": " "}}', "the provider answered 400"),
        (b'{"error": {"message": 5}}', "the provider answered 400"),
        (b'{"error": null}', "the provider answered 400"),
        (b'{"detail": "no"}', "the provider answered 400"),
        (b"[1]", "the provider answered 400"),
        (b"<html>Bad</html>", "the provider answered 400"),
        (b"\xff\xfe", "the provider answered 400"),
        (b"", "the provider answered 400"),
    ],
)
async def test_the_provider_s_words_are_found_wherever_it_put_them(
    wire: OpenAIAdapter, body: bytes, words: str
) -> None:
    head = f"HTTP/1.1 400 Bad\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    async with _sending(head + body) as url:
        error, _ = await _failure(wire, _target(url))
    assert error.message == f"scripted/one: {words}"


async def test_long_words_are_cut(wire: OpenAIAdapter, models: ModelServer) -> None:
    models.script("wordy", Reply(status=400, message="x" * 100_000))
    error, _ = await _failure(wire, _target(models.url, "scripted/wordy"))
    assert len(error.message) == 500


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("3", 3.0),
        ("0.25", 0.25),
        ("0", 0.0),
        ("-5", 0.0),
        ("nan", 0.0),
        ("soon", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_how_long_to_wait_is_read_from_retry_after(
    wire: OpenAIAdapter, models: ModelServer, status: int, header: str, seconds: float | None
) -> None:
    models.script("later", Reply(status=status, headers={"Retry-After": header}))
    error, _ = await _failure(wire, _target(models.url, "scripted/later"))
    assert error.retry_after == seconds


async def test_without_retry_after_no_wait_is_told(
    wire: OpenAIAdapter, models: ModelServer
) -> None:
    models.script("bare", Reply(status=429))
    error, _ = await _failure(wire, _target(models.url, "scripted/bare"))
    assert error.retry_after is None


# The key


@STREAMED_AND_WHOLE
async def test_a_refusal_that_repeats_the_key_is_masked(
    wire: OpenAIAdapter, models: ModelServer, *, is_streamed: bool
) -> None:
    models.script("echo", Reply(status=401, message=f"Wrong key {KEY}, again: {KEY}"))
    error, _ = await _failure(wire, _target(models.url, "scripted/echo"), is_streamed=is_streamed)
    assert error.message == "scripted/echo: Wrong key ***, again: ***"
    assert KEY not in repr(error.details)


async def test_an_error_in_a_stream_that_repeats_the_key_is_masked(wire: OpenAIAdapter) -> None:
    async with _sending(SSE, _event(error={"message": f"Wrong key {KEY}"}), DONE) as url:
        error, _ = await _failure(wire, _target(url))
    assert error.message == "scripted/one: Wrong key ***"


@pytest.mark.parametrize("length", range(470, 500, 6))
async def test_a_key_on_the_edge_of_a_long_message_is_masked(
    wire: OpenAIAdapter, models: ModelServer, length: int
) -> None:
    models.script("edge", Reply(status=401, message="x" * length + KEY))
    error, _ = await _failure(wire, _target(models.url, "scripted/edge"))
    assert KEY[:4] not in error.message


async def test_a_target_does_not_show_its_key() -> None:
    assert KEY not in repr(_target("https://api.example.com/v1"))
    assert KEY not in str(_target("https://api.example.com/v1"))


# Errors inside an answer


async def test_an_error_in_the_middle_of_a_stream_ends_it(
    wire: OpenAIAdapter, models: ModelServer
) -> None:
    models.script("amid", Reply(texts=["one", "two"], error_after=1, message="overloaded"))
    error, before = await _failure(wire, _target(models.url, "scripted/amid"))
    assert before == [Text("one")]
    assert error.message == "scripted/amid: overloaded"


@pytest.mark.parametrize("told", ["overloaded", {"code": 5}, {}, 5, ["overloaded"]])
async def test_an_error_in_a_stream_may_have_any_form(wire: OpenAIAdapter, told: Any) -> None:
    async with _sending(SSE, _event(error=told), DONE) as url:
        error, _ = await _failure(wire, _target(url))
    words = told if told == "overloaded" else "the provider reports an error"
    assert error.message == f"scripted/one: {words}"


async def test_an_error_instead_of_a_whole_answer_is_told(wire: OpenAIAdapter) -> None:
    async with _sending(JSON, b'{"error": {"message": "no credit"}}') as url:
        error, _ = await _failure(wire, _target(url), is_streamed=False)
    assert error.message == "scripted/one: no credit"


# Connections that fail


@STREAMED_AND_WHOLE
async def test_nobody_there_is_unreachable(wire: OpenAIAdapter, *, is_streamed: bool) -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    error, _ = await _failure(wire, _target(url), is_streamed=is_streamed)
    assert error.reason == "unreachable"
    assert error.message.startswith("scripted/one: 127.0.0.1")
    assert error.details == {"model": "scripted/one", "reason": "unreachable"}


async def test_no_tls_where_tls_is_expected_is_unreachable(
    wire: OpenAIAdapter, models: ModelServer
) -> None:
    error, _ = await _failure(wire, _target(models.url.replace("http://", "https://")))
    assert error.reason == "unreachable"


async def test_a_connection_that_closes_without_a_word_is_unreachable(wire: OpenAIAdapter) -> None:
    async with _sending() as url:
        error, _ = await _failure(wire, _target(url))
    assert error.reason == "unreachable"


async def test_an_answer_that_is_no_http_is_unreachable(wire: OpenAIAdapter) -> None:
    async with _sending(b"220 mail.example.com ESMTP\r\n") as url:
        error, _ = await _failure(wire, _target(url))
    assert error.reason == "unreachable"


@pytest.mark.parametrize("after", [0, 1])
async def test_a_dropped_stream_is_broken(
    wire: OpenAIAdapter, models: ModelServer, after: int
) -> None:
    models.script("dropped", Reply(texts=["one", "two"], drop_after=after))
    error, before = await _failure(wire, _target(models.url, "scripted/dropped"))
    assert error.reason == "broken"
    assert before == [Text("one")][:after]


async def test_a_whole_answer_that_is_cut_off_is_broken(wire: OpenAIAdapter) -> None:
    head = JSON[:-2] + b"Content-Length: 500\r\n\r\n"
    async with _sending(head, b'{"choices": [{"message"') as url:
        error, _ = await _failure(wire, _target(url), is_streamed=False)
    assert error.reason == "broken"


@pytest.mark.parametrize("end", [b"", DONE], ids=["end of connection", "done"])
async def test_an_answer_that_never_says_that_it_is_finished_is_broken(
    wire: OpenAIAdapter, end: bytes
) -> None:
    async with _sending(SSE, _delta(content="One sec"), end) as url:
        error, before = await _failure(wire, _target(url))
    assert error.reason == "broken"
    assert error.message == "scripted/one broke off its answer"
    assert before == [Text("One sec")]


async def test_half_a_tool_call_is_not_passed_on(wire: OpenAIAdapter) -> None:
    half = {"index": 0, "id": "a", "function": {"name": "pay", "arguments": '{"sum": 1'}}
    async with _sending(SSE, _delta(tool_calls=[half])) as url:
        error, before = await _failure(wire, _target(url))
    assert error.reason == "broken"
    assert before == []


# Silence


@STREAMED_AND_WHOLE
async def test_a_provider_that_does_not_answer_times_out(
    wire: OpenAIAdapter, models: ModelServer, monkeypatch: pytest.MonkeyPatch, *, is_streamed: bool
) -> None:
    monkeypatch.setattr(wires, "IDLE_SECONDS" if is_streamed else "TOTAL_SECONDS", 0.1)
    hold = asyncio.Event()
    models.script("silent", Reply(hold=hold))
    error, _ = await _failure(wire, _target(models.url, "scripted/silent"), is_streamed=is_streamed)
    hold.set()
    assert error.reason == "timeout"
    limits = "600 s, or 0.1 s of silence" if is_streamed else "0.1 s"
    assert error.message == f"scripted/silent: no answer within {limits}"


async def test_a_provider_that_falls_silent_times_out(
    wire: OpenAIAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wires, "IDLE_SECONDS", 0.1)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE + _delta(content="One sec"))
        await writer.drain()
        await reader.read()

    async with _listening(handle) as url:
        error, before = await _failure(wire, _target(url))
    assert error.reason == "timeout"
    assert before == [Text("One sec")]


async def test_a_slow_stream_is_no_silence(
    wire: OpenAIAdapter, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wires, "IDLE_SECONDS", 0.8)
    models.script("slow", Reply(texts=["."] * 12, delay=0.08))
    assert _said(await _pieces(wire, _target(models.url, "scripted/slow"))) == "." * 12


async def test_a_whole_answer_may_be_thought_about_in_silence(
    wire: OpenAIAdapter, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wires, "IDLE_SECONDS", 0.1)
    models.script("thinking", Reply(first_delay=0.4))
    target = _target(models.url, "scripted/thinking")
    assert _said(await _pieces(wire, target, is_streamed=False)) == "Hello there"


async def test_even_a_steady_answer_ends_at_the_time_limit(
    wire: OpenAIAdapter, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wires, "TOTAL_SECONDS", 0.3)
    models.script("endless", Reply(texts=["."] * 1000, delay=0.01))
    error, before = await _failure(wire, _target(models.url, "scripted/endless"))
    assert error.reason == "timeout"
    assert before
    assert "0.3 s" in error.message


# The way out: `idle_seconds` is the longest silence, `timeout_seconds` the whole


async def _dripping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(SSE)
    while not reader.at_eof():
        writer.write(b".")
        await writer.drain()
        await asyncio.sleep(0.02)


async def _read_for(egress: Egress, url: str, **seconds: Any) -> tuple[str, float]:
    """What the way out says in the end, and after how long."""
    started = time.monotonic()
    with pytest.raises(EgressTimeout) as caught:
        async with egress.open("GET", url, **seconds) as response:
            await response.read()
    return str(caught.value), time.monotonic() - started


async def test_silence_is_measured_between_packets() -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE)
        for _ in range(40):
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.02)
        await reader.read()

    egress = Egress(Guard(("127.0.0.1",)))
    async with _listening(handle) as url:
        said, took = await _read_for(egress, url, timeout_seconds=10, idle_seconds=0.5)
    await egress.close()
    assert said == "no answer within 10 s, or 0.5 s of silence"
    assert 1.2 < took < 8


async def test_who_never_falls_silent_is_still_limited_as_a_whole() -> None:
    egress = Egress(Guard(("127.0.0.1",)))
    async with _listening(_dripping) as url:
        said, took = await _read_for(egress, url, timeout_seconds=0.4, idle_seconds=0.3)
    await egress.close()
    assert said == "no answer within 0.4 s, or 0.3 s of silence"
    assert 0.35 < took < 5


async def test_without_idle_seconds_only_the_whole_is_limited() -> None:
    egress = Egress(Guard(("127.0.0.1",)))
    async with _listening(_dripping) as url:
        said, took = await _read_for(egress, url, timeout_seconds=0.3)
    await egress.close()
    assert said == "no answer within 0.3 s"
    assert 0.25 < took < 5


# What is not the wire format


@STREAMED_AND_WHOLE
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{nope", id="broken"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'"text"', id="a text"),
        pytest.param(b"5", id="a number"),
        pytest.param(b'{"choices": {}}', id="choices of another kind"),
        pytest.param(b'{"choices": [5]}', id="a choice of another kind"),
        pytest.param(b'{"choices": [{"delta": {"content": 5}}]}', id="content of another kind"),
        pytest.param(b'{"choices": [{"delta": {"content": "\xff"}}]}', id="not UTF-8"),
        pytest.param(b'{"choices": [{"delta": {"content": "\\ud800"}}]}', id="half a character"),
    ],
)
async def test_what_is_not_the_wire_format_is_broken(
    wire: OpenAIAdapter, body: bytes, *, is_streamed: bool
) -> None:
    body = body if not is_streamed else b"data: " + body + b"\n\n" + STOP + DONE
    body = body if is_streamed else body.replace(b'"delta"', b'"message"')
    async with _sending(SSE if is_streamed else JSON, body) as url:
        error, _ = await _failure(wire, _target(url), is_streamed=is_streamed)
    assert error.reason == "broken"
    assert error.message == "scripted/one does not speak OpenAI's wire format"


@pytest.mark.parametrize("body", [b"", b"<html>Sign in</html>"], ids=["nothing", "a page"])
async def test_another_kind_of_content_is_broken(wire: OpenAIAdapter, body: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n"
    async with _sending(head + body) as url:
        error, _ = await _failure(wire, _target(url))
    assert error.reason == "broken"


async def test_a_stream_where_a_whole_answer_was_asked_for_is_broken(wire: OpenAIAdapter) -> None:
    async with _sending(SSE, _delta(content="Hi"), STOP, DONE) as url:
        error, _ = await _failure(wire, _target(url), is_streamed=False)
    assert error.reason == "broken"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(JSON + b'{"error": ' + DEEP, id="whole"),
        pytest.param(SSE + b'data: {"error": ' + DEEP + b"\n\n", id="stream"),
        pytest.param(JSON + b'{"unknown": ' + DEEP, id="where it is skipped"),
    ],
)
async def test_endless_nesting_is_broken(wire: OpenAIAdapter, body: bytes) -> None:
    async with _sending(body) as url:
        error, _ = await _failure(wire, _target(url))
    assert error.reason == "broken"


async def test_a_refusal_of_endless_nesting_is_still_a_refusal(wire: OpenAIAdapter) -> None:
    head = b"HTTP/1.1 400 Bad\r\nConnection: close\r\n\r\n"
    async with _sending(head + DEEP) as url:
        error, _ = await _failure(wire, _target(url))
    assert error.message == "scripted/one: the provider answered 400"


@pytest.mark.parametrize(
    "usage", [{"prompt_tokens": -100, "completion_tokens": 5}, {"prompt_tokens": 10**30}]
)
async def test_usage_that_cannot_be_is_not_believed(
    wire: OpenAIAdapter, usage: dict[str, int]
) -> None:
    async with _sending(SSE, _delta(content="Hi"), STOP, _event(usage=usage), DONE) as url:
        found = [
            piece for piece in await _pieces(wire, _target(url)) if isinstance(piece, UsedTokens)
        ]
    for used in found:
        assert 0 <= used.prompt_tokens < 2**31
        assert 0 <= used.completion_tokens < 2**31


# Answers without end


@asynccontextmanager
async def _without_end(head: bytes, packet: bytes) -> AsyncIterator[tuple[str, list[int]]]:
    """Sends the packet until the other side has gone; counts the bytes."""
    sent = [0]

    async def handle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while sent[0] < 64 * MIB:
            writer.write(packet)
            await writer.drain()
            sent[0] += len(packet)

    async with _listening(handle) as url:
        yield url, sent


@pytest.mark.parametrize(
    ("head", "packet"),
    [
        pytest.param(SSE, _delta(content="x" * 250_000), id="texts"),
        pytest.param(
            SSE,
            _delta(tool_calls=[{"index": 0, "function": {"arguments": "x" * 250_000}}]),
            id="arguments of a call",
        ),
        pytest.param(SSE, (b":" + b"x" * 99 + b"\n") * 10_000, id="comments"),
        pytest.param(JSON, b" " * MIB, id="a whole answer"),
        pytest.param(b"HTTP/1.1 400 Bad\r\n\r\n", b" " * MIB, id="a refusal"),
    ],
)
async def test_an_answer_without_end_stops(wire: OpenAIAdapter, head: bytes, packet: bytes) -> None:
    async with _without_end(head, packet) as (url, sent):
        error, _ = await _failure(wire, _target(url))
    assert error.reason == "broken"
    assert error.message == "scripted/one: the answer is too long"
    # 32 MiB, and what was on its way meanwhile.
    assert sent[0] < 40 * MIB


@STREAMED_AND_WHOLE
async def test_a_long_answer_is_read_to_its_end(
    wire: OpenAIAdapter, models: ModelServer, *, is_streamed: bool
) -> None:
    models.script("long", Reply(texts=["x" * 1000] * 500, calls=[("f", "y" * 400_000)]))
    found = await _pieces(wire, _target(models.url, "scripted/long"), is_streamed=is_streamed)
    assert len(_said(found)) == 500_000
    assert len(_calls(found)[0].arguments) == 400_000


async def test_an_answer_that_unpacks_without_end_stops(wire: OpenAIAdapter) -> None:
    packed = gzip.compress(bytes(64 * MIB), compresslevel=1)
    async with _sending(JSON[:-2] + b"Content-Encoding: gzip\r\n\r\n", packed) as url:
        error, _ = await _failure(wire, _target(url))
    assert error.reason == "broken"


async def test_a_line_without_end_costs_what_it_is_long(wire: OpenAIAdapter) -> None:
    async def handle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE + b"data: ")
        for _ in range(4096):
            writer.write(b"x" * 1024)
            await writer.drain()
            await asyncio.sleep(0)

    started = time.process_time()
    async with _listening(handle) as url:
        error, _ = await _failure(wire, _target(url))
    assert error.reason == "broken"
    # To copy at each packet what came before it would take several seconds.
    assert time.process_time() - started < 1.5


async def _time_to_read(wire: OpenAIAdapter, **delta: Any) -> float:
    """60,000 events; 1,000 in a packet."""
    started = time.process_time()
    async with _sending(SSE, *[_delta(**delta) * 1000] * 60, STOP, DONE) as url:
        await _pieces(wire, _target(url))
    return time.process_time() - started


async def test_arguments_in_many_fragments_cost_what_they_are_long(wire: OpenAIAdapter) -> None:
    fragment = {"index": 0, "function": {"arguments": "x" * 16}}
    texts = await _time_to_read(wire, content="x" * 16)
    assert await _time_to_read(wire, tool_calls=[fragment]) < 3 * texts


# Addresses that no tenant may use


async def test_a_private_address_is_refused() -> None:
    wire = OpenAIAdapter(Egress(Guard(())))
    error, _ = await _failure(wire, _target("http://127.0.0.1:9/v1"))
    await wire.close()
    assert error.reason == "refused"
    assert error.message == "scripted/one: 127.0.0.1 is not a public address"


async def test_a_name_that_leads_to_a_private_address_is_refused() -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["93.184.216.34", "127.0.0.1"]

    wire = OpenAIAdapter(Egress(Guard((), resolve)))
    error, _ = await _failure(wire, _target("https://models.example.com/v1"))
    await wire.close()
    assert error.reason == "refused"
    assert "models.example.com leads to an address that is not public" in error.message


async def test_a_name_that_nobody_knows_is_unreachable() -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        raise OSError("no such name")

    wire = OpenAIAdapter(Egress(Guard((), resolve)))
    error, _ = await _failure(wire, _target("https://models.example.com/v1"))
    await wire.close()
    assert error.reason == "unreachable"


# Embeddings


async def _embedded(wire: OpenAIAdapter, *vectors: Any, texts: int = 2) -> list[list[float]]:
    body = json.dumps({"data": vectors}).encode()
    async with _sending(JSON, body) as url:
        return (await wire.embed(_target(url), ["text"] * texts)).vectors


async def test_embeddings_come_in_the_order_of_their_texts(
    wire: OpenAIAdapter, models: ModelServer
) -> None:
    found = await wire.embed(_target(models.url), ["a", "bbb", "cc"])
    assert found.vectors == [[1.0, 1.0], [3.0, 1.0], [2.0, 1.0]]
    assert found.prompt_tokens == 3


async def test_embeddings_without_usage_are_taken(wire: OpenAIAdapter) -> None:
    vectors = [{"index": 0, "embedding": [1, 2.5]}, {"index": 1, "embedding": [0, 0]}]
    assert await _embedded(wire, *vectors) == [[1.0, 2.5], [0.0, 0.0]]


@pytest.mark.parametrize(
    "indexes",
    [
        pytest.param([0], id="one too few"),
        pytest.param([], id="none"),
        pytest.param([0, 1, 2], id="one too many"),
        pytest.param([1, 1], id="one twice"),
        pytest.param([1, 2], id="the wrong ones"),
    ],
)
async def test_embeddings_that_do_not_fit_their_texts_are_broken(
    wire: OpenAIAdapter, indexes: list[int]
) -> None:
    with pytest.raises(ModelFailed) as caught:
        await _embedded(wire, *({"index": index, "embedding": [1]} for index in indexes))
    assert caught.value.reason == "broken"


@pytest.mark.parametrize("vector", [{"embedding": [1]}, {"index": 0}, {"index": 0, "embedding": 1}])
async def test_embeddings_of_another_form_are_broken(wire: OpenAIAdapter, vector: Any) -> None:
    with pytest.raises(ModelFailed) as caught:
        await _embedded(wire, vector, texts=1)
    assert caught.value.reason == "broken"


async def test_a_refusal_to_embed_is_told(wire: OpenAIAdapter) -> None:
    body = b'{"error": {"message": "too many"}}'
    head = f"HTTP/1.1 429 No\r\nRetry-After: 4\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    async with _sending(head + body) as url:
        with pytest.raises(ModelFailed) as caught:
            await wire.embed(_target(url), ["text"])
    assert (caught.value.reason, caught.value.retry_after) == ("rate_limited", 4.0)
    assert caught.value.message == "scripted/one: too many"


# The provider's own list


async def test_a_provider_lists_its_models(wire: OpenAIAdapter, models: ModelServer) -> None:
    assert await wire.list_models(_target(models.url), 5) == ["one", "two"]


async def test_a_list_is_cut_at_a_thousand_models(wire: OpenAIAdapter) -> None:
    body = json.dumps({"data": [{"id": str(number)} for number in range(1500)]}).encode()
    async with _sending(JSON, body) as url:
        found = await wire.list_models(_target(url), 5)
    assert found == [str(number) for number in range(1000)]


async def test_a_list_without_end_stops(wire: OpenAIAdapter) -> None:
    async with _without_end(JSON, b" " * MIB) as (url, sent):
        with pytest.raises(ModelFailed):
            await wire.list_models(_target(url), 5)
    assert sent[0] < 40 * MIB


async def test_a_list_that_is_refused_says_why(wire: OpenAIAdapter, models: ModelServer) -> None:
    target = Target("scripted", "scripted", "wrong", models.url)
    with pytest.raises(ModelFailed) as caught:
        await wire.list_models(target, 5)
    assert caught.value.reason == "refused"
    assert caught.value.message == "scripted: no such key"


@pytest.mark.parametrize("body", [b"{}", b'{"data": {}}', b'{"data": [5]}', b'{"data": [{}]}', b""])
async def test_a_list_of_another_form_is_broken(wire: OpenAIAdapter, body: bytes) -> None:
    async with _sending(JSON, body) as url:
        with pytest.raises(ModelFailed) as caught:
            await wire.list_models(_target(url), 5)
    assert caught.value.reason == "broken"


async def test_a_list_that_does_not_come_times_out(wire: OpenAIAdapter) -> None:
    async def handle(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with _listening(handle) as url:
        with pytest.raises(ModelFailed) as caught:
            await wire.list_models(_target(url), 0.1)
    assert caught.value.reason == "timeout"


@pytest.mark.parametrize("how", ["closed", "reset", "nonsense", "too short"])
async def test_an_answer_is_whole_whatever_happens_after_its_last_event(
    wire: OpenAIAdapter, how: str
) -> None:
    said = _delta(content="All of it") + STOP + DONE
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"

    async def handle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if how == "too short":
            writer.write(head + b"Content-Length: 100000\r\n\r\n" + said)
        else:
            chunk = b"%x\r\n%s\r\n" % (len(said), said)
            writer.write(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk)
        await writer.drain()
        await asyncio.sleep(0.03)
        if how == "nonsense":
            writer.write(b"zz\r\n")
            await writer.drain()
        if how == "reset":
            writer.transport.abort()

    async with _listening(handle) as url:
        assert await _pieces(wire, _target(url)) == [Text("All of it")]


async def test_calls_without_end_are_a_broken_answer(wire: OpenAIAdapter) -> None:
    calls = [{"index": number, "id": f"c{number}"} for number in range(MAX_TOOL_CALLS + 1)]
    async with _sending(SSE + _delta(tool_calls=calls) + STOP + DONE) as url:
        error, before = await _failure(wire, _target(url))
    assert (error.reason, before) == ("broken", [])
