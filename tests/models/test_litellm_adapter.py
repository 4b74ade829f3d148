"""Providers that do not speak OpenAI's wire format, through the real litellm, on loopback."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from aiohttp import web

from app import settings as configuration
from app.domain.models import gateway
from app.domain.models import litellm_adapter as adapter
from app.domain.models.errors import ModelFailed
from app.domain.models.litellm_adapter import LiteLLMAdapter
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
from app.domain.models.providers import PROVIDERS
from app.domain.models.service import Models
from app.services import Services
from tests.model_server import ModelServer, Reply
from tests.peer import Handler, Peer
from tests.ports import free_port
from tests.stores import Stores
from tests.world import Client, World

# The library warns of itself at import and in use.
pytestmark = pytest.mark.filterwarnings("ignore")

ROOT = Path(__file__).parent.parent.parent
KEY = "sk-live-0123456789abcdef"
STREAMED_AND_WHOLE = pytest.mark.parametrize("is_streamed", [True, False], ids=["stream", "whole"])


@pytest.fixture(scope="module")
async def library() -> AsyncIterator[Any]:
    found = await LiteLLMAdapter()._litellm()
    yield found
    await found.close_litellm_async_clients()


@pytest.fixture
def others(library: Any) -> LiteLLMAdapter:
    made = LiteLLMAdapter()
    made._library = library
    return made


def _move(monkeypatch: pytest.MonkeyPatch, provider: str, url: str) -> None:
    """From now on this provider is found at a loopback address."""
    moved = msgspec.structs.replace(
        adapter.LITELLM_PROVIDERS[provider], chat_url=url, embed_url=url
    )
    monkeypatch.setitem(adapter.LITELLM_PROVIDERS, provider, moved)


@pytest.fixture
def jamba(
    others: LiteLLMAdapter, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> LiteLLMAdapter:
    """The one of the providers that speaks OpenAI's format."""
    _move(monkeypatch, "ai21", models.url)
    return others


class Anthropic(Peer):
    """A small model in Anthropic's own format; the model's name says how it behaves."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.left = asyncio.Event()

    def routes(self) -> dict[str, Handler]:
        return {"POST /v1/messages": self._answer}

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        model = body["model"]
        if model.isdigit():
            told = {"type": "error", "error": {"type": "odd", "message": "not today"}}
            return web.json_response(told, status=int(model), headers={"Retry-After": "7"})
        if not body.get("stream"):
            return web.json_response(_WHOLE)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for place, event in enumerate(_EVENTS):
            if model == f"error-at-{place}":
                error = {"type": "overloaded_error", "message": "Overloaded"}
                await _send(response, {"type": "error", "error": error})
                return response
            if model == f"end-at-{place}":
                return response
            if model == f"drop-at-{place}" and request.transport is not None:
                request.transport.abort()
                return response
            if model == f"wait-at-{place}":
                await _wait_until_left(request, self.left)
                return response
            await _send(response, event)
        return response


async def _send(response: web.StreamResponse, event: dict[str, Any]) -> None:
    await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())


def _start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


_EVENTS = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": "claude",
            "usage": {"input_tokens": 5, "output_tokens": 1},
        },
    },
    _start(0, type="text", text=""),
    _delta(0, type="text_delta", text="Let me"),
    _delta(0, type="text_delta", text=" see."),
    _stop(0),
    _start(1, type="tool_use", id="tu_1", name="weather", input={}),
    _delta(1, type="input_json_delta", partial_json='{"at"'),
    _delta(1, type="input_json_delta", partial_json=': "Ulm"}'),
    _stop(1),
    _start(2, type="tool_use", id="tu_2", name="weather", input={}),
    _delta(2, type="input_json_delta", partial_json='{"at": "Bonn"}'),
    _stop(2),
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use"},
        "usage": {"output_tokens": 6},
    },
    {"type": "message_stop"},
]
_WHOLE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "tu_1", "name": "weather", "input": {"at": "Ulm"}},
        {"type": "tool_use", "id": "tu_2", "name": "weather", "input": {"at": "Bonn"}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 5, "output_tokens": 6},
}


@pytest.fixture
async def anthropic() -> AsyncIterator[Anthropic]:
    made = Anthropic()
    await made.start()
    yield made
    await made.close()


@pytest.fixture
def claude(
    others: LiteLLMAdapter, anthropic: Anthropic, monkeypatch: pytest.MonkeyPatch
) -> LiteLLMAdapter:
    _move(monkeypatch, "anthropic", anthropic.url)
    return others


class Google(Peer):
    """Gemini's chat and Cohere's; the model's name says how it behaves."""

    def __init__(self) -> None:
        super().__init__()
        self.left = asyncio.Event()
        self.requests: list[tuple[str, dict[str, Any]]] = []

    def routes(self) -> dict[str, Handler]:
        return {"POST /models/{model}": self._gemini, "POST /v2/chat": self._cohere}

    async def _gemini(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.path_qs, await request.json()))
        model = request.match_info["model"].partition(":")[0]
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await _send_data(response, _candidate({"text": "Let me"}))
        if model == "wait":
            await _wait_until_left(request, self.left)
            return response
        if model == "error":
            error = {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}
            await _send_data(response, {"error": error})
            return response
        call = {"functionCall": {"name": "weather", "args": {"at": "Ulm"}}}
        await _send_data(response, _candidate(call))
        if model == "drop" and request.transport is not None:
            request.transport.abort()
        elif model != "end":
            usage = {"promptTokenCount": 5, "candidatesTokenCount": 6, "totalTokenCount": 11}
            last = {**_candidate({"text": " see."}, finishReason="STOP"), "usageMetadata": usage}
            await _send_data(response, last)
        return response

    async def _cohere(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.requests.append((request.path_qs, body))
        message = {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}]}
        usage = {"tokens": {"input_tokens": 5, "output_tokens": 6}}
        told = {"id": "c", "finish_reason": "COMPLETE", "message": message, "usage": usage}
        return web.json_response(told)


def _candidate(part: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0, **fields}]}


async def _send_data(response: web.StreamResponse, data: dict[str, Any]) -> None:
    await response.write(b"data: " + json.dumps(data).encode() + b"\r\n\r\n")


async def _wait_until_left(request: web.Request, left: asyncio.Event) -> None:
    deadline = time.monotonic() + 3
    while request.transport is not None and not request.transport.is_closing():
        if time.monotonic() > deadline:
            return
        await asyncio.sleep(0.01)
    left.set()


@pytest.fixture
async def google(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Google]:
    made = Google()
    await made.start()
    _move(monkeypatch, "gemini", made.url)
    _move(monkeypatch, "cohere", f"{made.url}/v2/chat")
    yield made
    await made.close()


def _target(model: str) -> Target:
    return Target(model, model.partition("/")[0], KEY)


def _ask(**fields: Any) -> ModelRequest:
    return ModelRequest(**{"messages": [Message("user", "Hello")], **fields})


async def _settle() -> None:
    """Wait for the library's own threads: they format tracebacks, and where pytest does so at the
    same moment, CPython 3.11 gives up with a SystemError.
    """
    pool = import_module("litellm.litellm_core_utils.thread_pool_executor").executor
    deadline = time.monotonic() + 10
    while (
        any("handler" in thread.name for thread in threading.enumerate())
        or not pool._work_queue.empty()
        or pool._idle_semaphore._value < len(pool._threads)
    ):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.002)


async def _pieces(others: LiteLLMAdapter, model: str, **fields: Any) -> list[AnswerPart]:
    async with aclosing(others.answer(_target(model), _ask(**fields))) as pieces:
        found = [piece async for piece in pieces]
    await _settle()
    return found


async def _failure(
    others: LiteLLMAdapter, model: str, **fields: Any
) -> tuple[ModelFailed, list[AnswerPart]]:
    before: list[AnswerPart] = []
    try:
        async with aclosing(others.answer(_target(model), _ask(**fields))) as pieces:
            async for piece in pieces:
                before.append(piece)  # noqa: PERF401  # what came before the error counts
    except ModelFailed as error:
        await _settle()
        return error, before
    await _settle()
    raise AssertionError(f"nothing failed: {before}")


def _said(pieces: list[AnswerPart]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Text))


def _calls(pieces: list[AnswerPart]) -> list[ToolCall]:
    return [piece for piece in pieces if isinstance(piece, ToolCall)]


# When it is imported


def _run(script: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()[-1]


def test_starting_does_not_import_the_library() -> None:
    script = "import sys, app.main, app.cli, workers.main\nprint('litellm' in sys.modules)"
    assert _run(script) == "False"


_CHAT = """
import asyncio, os, sys
from app import settings
from app.main import create_app
from tests.model_server import serving
from tests.talk import talker
from tests.world import World

async def main():
    app = create_app(settings.load(os.environ))
    async with serving() as models:
        talk = await talker(World(app), models)
        reply = await talk.say("Hello")
        listed = (await talk.client.get("/api/v1/models")).json()["data"]
        print(reply["message"]["content"], len(listed), "litellm" in sys.modules)
    await app.state.services.close()

asyncio.run(main())
"""


@pytest.mark.usefixtures("world")
def test_chatting_over_the_wire_does_not_import_the_library(stores: Stores) -> None:
    assert _run(_CHAT, **configuration.as_env(stores.settings)) == "Hello there 2 False"


_IMPORT = """
import asyncio, socket
from app.domain.models.litellm_adapter import LiteLLMAdapter

looked_up = []
def refuse(*arguments, **_):
    looked_up.append(arguments[0])
    raise socket.gaierror("no network")
socket.getaddrinfo = refuse

async def main():
    others = LiteLLMAdapter()
    first, second = await asyncio.gather(others._litellm(), others._litellm())
    print(first is second, looked_up)
    await others.close()

asyncio.run(main())
"""


def test_the_import_asks_nobody_on_the_network() -> None:
    assert _run(_IMPORT) == "True []"


# What is asked


async def test_the_provider_is_asked_with_the_tenant_s_key(
    jamba: LiteLLMAdapter, models: ModelServer
) -> None:
    await _pieces(jamba, "ai21/jamba-small", temperature=0.25, max_tokens=99)
    assert models.headers[-1]["Authorization"] == f"Bearer {KEY}"
    asked = models.requests[-1]
    assert asked["model"] == "jamba-small"
    assert (asked["temperature"], asked["max_tokens"]) == (0.25, 99)
    assert asked["messages"] == [{"role": "user", "content": "Hello"}]


async def test_each_provider_is_asked_in_its_own_format(
    claude: LiteLLMAdapter, anthropic: Anthropic
) -> None:
    parameters = {"type": "object", "properties": {"at": {"type": "string"}}}
    messages = [
        Message("system", "Be brief."),
        Message("user", "Weather?"),
        Message("assistant", "", (ToolCall("tu_7", "weather", '{"at": "Ulm"}'),)),
        Message("tool", "rain", tool_call_id="tu_7"),
    ]
    functions = (Function("weather", "Tells the weather", parameters),)
    await _pieces(claude, "anthropic/claude", messages=messages, functions=functions)
    asked = anthropic.requests[-1]
    assert anthropic.headers[-1]["x-api-key"] == KEY
    assert asked["system"] == [{"type": "text", "text": "Be brief."}]
    assert [message["role"] for message in asked["messages"]] == ["user", "assistant", "user"]
    assert asked["messages"][1]["content"][-1]["input"] == {"at": "Ulm"}
    assert asked["messages"][2]["content"][0]["tool_use_id"] == "tu_7"
    assert asked["tools"][0]["name"] == "weather"
    assert asked["tools"][0]["input_schema"]["properties"] == parameters["properties"]


_ADDRESSES = [
    ("anthropic/claude", ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"]),
    ("anthropic/claude-2", ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"]),
    ("gemini/gemini-2.0-flash", ["GEMINI_API_BASE"]),
    ("cohere/command-r", ["COHERE_API_BASE"]),
    ("ai21/jamba-mini-1.7", ["AI21_API_BASE", "OPENAI_BASE_URL", "OPENAI_API_BASE"]),
    ("ai21/jamba-of-tomorrow", ["AI21_API_BASE", "OPENAI_BASE_URL", "OPENAI_API_BASE"]),
    ("replicate/meta/llama", ["REPLICATE_API_BASE"]),
]


@pytest.mark.parametrize(("model", "names"), _ADDRESSES)
async def test_the_environment_does_not_lead_a_tenant_s_key_elsewhere(
    others: LiteLLMAdapter, monkeypatch: pytest.MonkeyPatch, model: str, names: list[str]
) -> None:
    asked_for: list[str] = []

    def resolve(host: str | bytes, *_arguments: Any, **_options: Any) -> Any:
        asked_for.append(host if isinstance(host, str) else host.decode())
        raise socket.gaierror(f"no network: {host!r}")

    for name in names:
        monkeypatch.setenv(name, "https://elsewhere.test")
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    await _failure(others, model)
    assert "elsewhere.test" not in asked_for
    assert (
        urlsplit(adapter.LITELLM_PROVIDERS[model.partition("/")[0]].chat_url).hostname in asked_for
    )


def test_every_provider_without_an_address_of_its_own_is_reached_through_the_library() -> None:
    others = {name for name, provider in PROVIDERS.items() if provider.base_url is None}
    assert others == set(adapter.LITELLM_PROVIDERS)


# What comes back


async def test_a_stream_comes_in_pieces(jamba: LiteLLMAdapter, models: ModelServer) -> None:
    models.script("pieces", Reply(texts=["One", ", ", "two"], usage=(40, 8)))
    found = await _pieces(jamba, "ai21/pieces")
    assert found == [Text("One"), Text(", "), Text("two"), UsedTokens(40, 8)]


async def test_a_whole_answer_is_one_text(jamba: LiteLLMAdapter, models: ModelServer) -> None:
    models.script("whole", Reply(texts=["One", ", ", "two"], usage=(40, 8)))
    found = await _pieces(jamba, "ai21/whole", is_streamed=False)
    assert found == [Text("One, two"), UsedTokens(40, 8)]


async def test_a_piece_is_passed_on_before_the_next_one_exists(
    jamba: LiteLLMAdapter, models: ModelServer
) -> None:
    gate = asyncio.Semaphore(1)

    class Gate:
        wait = gate.acquire

    models.script("held", Reply(texts=["first", "second"], hold=Gate()))
    async with aclosing(jamba.answer(_target("ai21/held"), _ask())) as pieces:
        async with asyncio.timeout(5):
            assert await anext(pieces) == Text("first")
        gate.release()
        assert _said([piece async for piece in pieces]) == "second"


@STREAMED_AND_WHOLE
async def test_calls_side_by_side_stay_apart_and_in_order(
    jamba: LiteLLMAdapter, models: ModelServer, *, is_streamed: bool
) -> None:
    calls = [("weather", {"at": town}) for town in ("Ulm", "Bonn", "Kiel")]
    models.script("calls", Reply(texts=["Let me see."], calls=calls))
    found = await _pieces(jamba, "ai21/calls", is_streamed=is_streamed)
    assert _said(found) == "Let me see."
    assert [(call.id, json.loads(call.arguments)["at"]) for call in _calls(found)] == [
        ("call_0", "Ulm"),
        ("call_1", "Bonn"),
        ("call_2", "Kiel"),
    ]


@STREAMED_AND_WHOLE
async def test_another_format_gives_the_same_pieces(
    claude: LiteLLMAdapter, *, is_streamed: bool
) -> None:
    found = await _pieces(claude, "anthropic/claude", is_streamed=is_streamed)
    assert _said(found) == "Let me see."
    assert [(call.id, call.name, json.loads(call.arguments)) for call in _calls(found)] == [
        ("tu_1", "weather", {"at": "Ulm"}),
        ("tu_2", "weather", {"at": "Bonn"}),
    ]
    assert [piece for piece in found if isinstance(piece, UsedTokens)] == [UsedTokens(5, 6)]


async def test_gemini_streams(others: LiteLLMAdapter, google: Google) -> None:
    found = await _pieces(others, "gemini/gemini-x")
    assert google.requests[0][0] == "/models/gemini-x:streamGenerateContent?alt=sse"
    assert _said(found) == "Let me see."
    assert [(call.name, json.loads(call.arguments)) for call in _calls(found)] == [
        ("weather", {"at": "Ulm"})
    ]
    assert [piece for piece in found if isinstance(piece, UsedTokens)] == [UsedTokens(5, 6)]


@STREAMED_AND_WHOLE
async def test_cohere_is_asked_for_a_whole_answer(
    others: LiteLLMAdapter, google: Google, *, is_streamed: bool
) -> None:
    found = await _pieces(others, "cohere/command-r", is_streamed=is_streamed)
    assert not google.requests[0][1].get("stream")
    assert found == [Text("Let me see."), UsedTokens(5, 6)]


@STREAMED_AND_WHOLE
async def test_nul_characters_are_dropped(
    jamba: LiteLLMAdapter, models: ModelServer, *, is_streamed: bool
) -> None:
    models.script("nul", Reply(texts=["a\0b", "\0c"], calls=[("f", '{"x": "\0y"}')]))
    found = await _pieces(jamba, "ai21/nul", is_streamed=is_streamed)
    assert _said(found) == "abc"
    assert _calls(found)[0].arguments == '{"x": "y"}'


@pytest.mark.parametrize("usage", [(-100, -5), (10**15, 10**15)])
async def test_impossible_usage_is_not_believed(
    jamba: LiteLLMAdapter, models: ModelServer, usage: tuple[int, int]
) -> None:
    models.script("usage", Reply(usage=usage))
    (used,) = [p for p in await _pieces(jamba, "ai21/usage") if isinstance(p, UsedTokens)]
    assert 0 <= used.prompt_tokens < 2**31
    assert 0 <= used.completion_tokens < 2**31


async def test_who_stops_listening_stops_the_provider(
    claude: LiteLLMAdapter, anthropic: Anthropic
) -> None:
    async with aclosing(claude.answer(_target("anthropic/wait-at-4"), _ask())) as pieces:
        async with asyncio.timeout(5):
            assert await anext(pieces) == Text("Let me")
    async with asyncio.timeout(2):
        await anthropic.left.wait()


async def test_who_stops_listening_stops_a_provider_of_openai_s_kind(
    jamba: LiteLLMAdapter, models: ModelServer
) -> None:
    models.script("talkative", Reply(texts=["word"] * 100, delay=0.05))
    early = models.closed_early
    async with aclosing(jamba.answer(_target("ai21/talkative"), _ask())) as pieces:
        async with asyncio.timeout(5):
            assert await anext(pieces) == Text("word")
    deadline = time.monotonic() + 2
    while models.closed_early == early:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_who_stops_listening_stops_gemini(others: LiteLLMAdapter, google: Google) -> None:
    async with aclosing(others.answer(_target("gemini/wait"), _ask())) as pieces:
        async with asyncio.timeout(5):
            assert await anext(pieces) == Text("Let me")
    async with asyncio.timeout(2):
        await google.left.wait()


async def test_who_is_cancelled_while_waiting_stops_the_provider(
    claude: LiteLLMAdapter, anthropic: Anthropic
) -> None:
    got: list[AnswerPart] = []

    async def listen() -> None:
        async with aclosing(claude.answer(_target("anthropic/wait-at-4"), _ask())) as pieces:
            async for piece in pieces:
                got.append(piece)  # noqa: PERF401  # seen from outside while it goes on

    task = asyncio.create_task(listen())
    deadline = time.monotonic() + 5
    while _said(got) != "Let me see.":
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(2):
        await anthropic.left.wait()


# Failures


@STREAMED_AND_WHOLE
@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (400, "refused"),
        (401, "refused"),
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
async def test_a_refusal_has_a_reason_and_is_asked_for_once(
    jamba: LiteLLMAdapter, models: ModelServer, status: int, reason: str, *, is_streamed: bool
) -> None:
    models.script("refusing", Reply(status=status, message="not today"))
    asked = len(models.asked("refusing"))
    error, before = await _failure(jamba, "ai21/refusing", is_streamed=is_streamed)
    assert before == []
    assert error.reason == reason
    assert error.details == {
        "model": "ai21/refusing",
        "reason": reason,
        "provider_status": status,
    }
    assert error.message.startswith("ai21/refusing: ")
    assert "not today" in error.message
    assert len(models.asked("refusing")) == asked + 1


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (400, "refused"),
        (401, "refused"),
        (403, "refused"),
        (404, "refused"),
        (429, "rate_limited"),
        (500, "unavailable"),
        (503, "unavailable"),
        (529, "unavailable"),
    ],
)
async def test_a_refusal_in_another_format_has_a_reason_as_well(
    claude: LiteLLMAdapter, anthropic: Anthropic, status: int, reason: str
) -> None:
    error, _ = await _failure(claude, f"anthropic/{status}")
    assert error.reason == reason
    assert "not today" in error.message
    assert len(anthropic.requests) == 1


async def test_how_long_to_wait_is_read_from_retry_after(claude: LiteLLMAdapter) -> None:
    error, _ = await _failure(claude, "anthropic/429")
    assert error.retry_after == 7.0


@STREAMED_AND_WHOLE
async def test_a_refusal_that_repeats_the_key_is_masked(
    jamba: LiteLLMAdapter, models: ModelServer, *, is_streamed: bool
) -> None:
    models.script("echo", Reply(status=401, message=f"Wrong key {KEY}, again: {KEY}"))
    error, _ = await _failure(jamba, "ai21/echo", is_streamed=is_streamed)
    assert "Wrong key ***, again: ***" in error.message
    assert KEY not in error.message
    assert KEY not in repr(error.details)


async def test_long_words_are_cut(jamba: LiteLLMAdapter, models: ModelServer) -> None:
    models.script("wordy", Reply(status=400, message="x" * 100_000))
    error, _ = await _failure(jamba, "ai21/wordy")
    assert len(error.message) <= 500


async def test_the_library_s_own_name_is_not_told(
    jamba: LiteLLMAdapter, models: ModelServer
) -> None:
    models.script("name", Reply(status=401))
    error, _ = await _failure(jamba, "ai21/name")
    assert "litellm" not in error.message.lower()


@STREAMED_AND_WHOLE
async def test_nobody_there_is_unreachable(
    others: LiteLLMAdapter, monkeypatch: pytest.MonkeyPatch, *, is_streamed: bool
) -> None:
    _move(monkeypatch, "anthropic", f"http://127.0.0.1:{free_port()}")
    error, _ = await _failure(others, "anthropic/claude", is_streamed=is_streamed)
    assert error.reason == "unreachable"


@STREAMED_AND_WHOLE
async def test_silence_times_out(
    jamba: LiteLLMAdapter,
    models: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_streamed: bool,
) -> None:
    monkeypatch.setattr(adapter, "IDLE_SECONDS", 0.2)
    hold = asyncio.Event()
    models.script("silent", Reply(hold=hold))
    started = time.monotonic()
    error, _ = await _failure(jamba, "ai21/silent", is_streamed=is_streamed)
    hold.set()
    assert error.reason == "timeout"
    assert time.monotonic() - started < 5


async def test_a_whole_answer_that_does_not_come_to_an_end_is_broken(
    jamba: LiteLLMAdapter, models: ModelServer
) -> None:
    models.script("dropped-whole", Reply(drop_after=0))
    error, _ = await _failure(jamba, "ai21/dropped-whole", is_streamed=False)
    assert error.reason == "broken"


@pytest.mark.parametrize("how", ["end", "drop"])
@pytest.mark.parametrize("place", [1, 3])
async def test_a_stream_that_breaks_off_is_broken(
    claude: LiteLLMAdapter, how: str, place: int
) -> None:
    error, before = await _failure(claude, f"anthropic/{how}-at-{place}")
    assert error.reason == "broken"
    assert before == ([Text("Let me")] if place == 3 else [])


@pytest.mark.parametrize("after", [0, 1])
async def test_a_dropped_stream_of_openai_s_kind_is_broken(
    jamba: LiteLLMAdapter, models: ModelServer, after: int
) -> None:
    models.script("dropped", Reply(texts=["one", "two"], drop_after=after))
    error, before = await _failure(jamba, "ai21/dropped")
    assert error.reason == "broken"
    assert before == [Text("one")][:after]


@pytest.mark.parametrize("how", ["end", "drop", "error"])
@pytest.mark.usefixtures("google")
async def test_a_stream_of_gemini_that_breaks_off_is_broken(
    others: LiteLLMAdapter, how: str
) -> None:
    error, before = await _failure(others, f"gemini/{how}")
    assert error.reason == ("unavailable" if how == "error" else "broken")
    assert before == [Text("Let me")]


@pytest.mark.parametrize("place", [5, 7])
async def test_half_a_tool_call_is_not_passed_on(claude: LiteLLMAdapter, place: int) -> None:
    _, before = await _failure(claude, f"anthropic/end-at-{place}")
    assert _calls(before) == []


@pytest.mark.parametrize("after", [0, 1])
async def test_an_error_in_a_stream_of_openai_s_kind_ends_it(
    jamba: LiteLLMAdapter, models: ModelServer, after: int
) -> None:
    models.script("amid", Reply(texts=["one", "two"], error_after=after, message="overloaded"))
    error, before = await _failure(jamba, "ai21/amid")
    assert before == [Text("one")][:after]
    assert "overloaded" in error.message


async def test_an_error_in_the_middle_of_a_stream_ends_it(claude: LiteLLMAdapter) -> None:
    error, before = await _failure(claude, "anthropic/error-at-3")
    assert before == [Text("Let me")]
    assert "Overloaded" in error.message


@pytest.mark.parametrize("place", [1, 3])
async def test_an_overloaded_provider_is_unavailable(claude: LiteLLMAdapter, place: int) -> None:
    error, _ = await _failure(claude, f"anthropic/error-at-{place}")
    assert error.reason == "unavailable"


@STREAMED_AND_WHOLE
async def test_what_is_no_answer_is_a_failure(
    jamba: LiteLLMAdapter, models: ModelServer, *, is_streamed: bool
) -> None:
    models.script("nonsense", Reply(raw=b"{nope"))
    error, _ = await _failure(jamba, "ai21/nonsense", is_streamed=is_streamed)
    assert error.reason == "broken"


# Embeddings


class Embedder(Peer):
    """Cohere's and Gemini's embeddings: of each text its length. Refuses with `status`."""

    def __init__(self) -> None:
        super().__init__()
        self.status = 200
        self.left_out = 0

    def routes(self) -> dict[str, Handler]:
        return {"POST /embed": self._cohere, "POST /models/{model}": self._gemini}

    async def _cohere(self, request: web.Request) -> web.Response:
        if self.status != 200:
            told = {"message": f"no: {request.headers['Authorization']}"}
            return web.json_response(told, status=self.status)
        texts = (await request.json())["texts"]
        vectors = self._vectors(texts)
        meta = {"billed_units": {"input_tokens": len(texts)}}
        return web.json_response({"id": "e", "embeddings": {"float": vectors}, "meta": meta})

    async def _gemini(self, request: web.Request) -> web.Response:
        if self.status != 200:
            told = {"error": {"message": f"no: {request.headers['x-goog-api-key']}"}}
            return web.json_response(told, status=self.status)
        asked = (await request.json())["requests"]
        texts = [part["content"]["parts"][0]["text"] for part in asked]
        return web.json_response({"embeddings": [{"values": v} for v in self._vectors(texts)]})

    def _vectors(self, texts: list[str]) -> list[list[float]]:
        return [[float(len(text)), 1.0] for text in texts[self.left_out :]]


@pytest.fixture
async def embedder(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Embedder]:
    made = Embedder()
    await made.start()
    _move(monkeypatch, "cohere", f"{made.url}/embed")
    _move(monkeypatch, "gemini", made.url)
    yield made
    await _settle()
    await made.close()


EMBEDDING = pytest.mark.parametrize("model", ["cohere/embed-v4.0", "gemini/text-embedding-004"])


@pytest.mark.usefixtures("embedder")
async def test_embeddings_are_counted(others: LiteLLMAdapter) -> None:
    found = await others.embed(_target("cohere/embed-v4.0"), ["four", "four"])
    assert found.vectors == [[4.0, 1.0], [4.0, 1.0]]
    assert found.prompt_tokens == 2


@EMBEDDING
@pytest.mark.usefixtures("embedder")
async def test_embeddings_come_in_the_order_of_their_texts(
    others: LiteLLMAdapter, model: str
) -> None:
    found = await others.embed(_target(model), ["a", "bbb", "cc"])
    assert [vector[0] for vector in found.vectors] == [1.0, 3.0, 2.0]


@EMBEDDING
async def test_embeddings_that_are_left_out_are_a_failure(
    others: LiteLLMAdapter, embedder: Embedder, model: str
) -> None:
    embedder.left_out = 1
    with pytest.raises(ModelFailed) as caught:
        await others.embed(_target(model), ["a", "b"])
    assert caught.value.reason == "broken"


@EMBEDDING
async def test_a_failure_to_embed_is_told_without_the_key(
    others: LiteLLMAdapter, embedder: Embedder, model: str
) -> None:
    embedder.status = 429
    with pytest.raises(ModelFailed) as caught:
        await others.embed(_target(model), ["a"])
    assert caught.value.reason == "rate_limited"
    assert KEY not in caught.value.message
    assert "***" in caught.value.message


async def test_a_provider_without_embeddings_is_not_asked_for_them(others: LiteLLMAdapter) -> None:
    with pytest.raises(ModelFailed) as caught:
        await others.embed(_target("anthropic/claude"), ["a"])
    assert caught.value.reason == "refused"
    assert caught.value.message == "anthropic/claude: the provider anthropic has no embeddings"


# Through the API


@pytest.fixture
def hosted(
    jamba: LiteLLMAdapter, services: Services, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Client, str], Any]:
    """Adds a key of AI21, which this test finds on loopback."""
    monkeypatch.setattr(services.get(Models), "_litellm", jamba)
    monkeypatch.setattr(gateway, "RETRY_SECONDS", (0.01, 0.01))

    async def add(client: Client, key: str = KEY) -> str:
        body = {"provider": "ai21", "name": "Ours", "api_key": key}
        answer = await client.post("/api/v1/api-keys", body)
        assert answer.status_code == 201, answer.text
        found: str = answer.json()["id"]
        return found

    return add


async def _agent(client: Client, model: str) -> str:
    body = {"name": "A", "primary_model": model, "system_prompt": "You are a test."}
    answer = await client.post("/api/v1/agents", body)
    assert answer.status_code == 201, answer.text
    return f"/api/v1/agents/{answer.json()['id']}"


@pytest.mark.parametrize("model", ["ai21/jamba-tiny", "jamba-tiny"])
async def test_an_agent_chats_with_a_hosted_model(
    hosted: Callable[..., Any], world: World, models: ModelServer, model: str
) -> None:
    client = await world.user("tenant_admin")
    await hosted(client)
    models.script("jamba-tiny", Reply(status=503), Reply(texts=["Bonjour"], usage=(9, 2)))
    path = await _agent(client, model)
    reply = (await client.post(f"{path}/chat", {"message": "Hello"})).json()
    assert reply["message"]["content"] == "Bonjour"
    assert reply["usage"] == {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}


async def test_a_hosted_key_is_tried_with_the_smallest_question(
    hosted: Callable[..., Any], admin: Client, models: ModelServer
) -> None:
    key_id = await hosted(admin)
    tried = (await admin.post(f"/api/v1/api-keys/{key_id}/test")).json()
    assert tried["success"] is True
    assert tried["message"].startswith("The provider accepted the key: ai21/")
    assert models.requests[-1]["max_tokens"] == 1


async def test_a_hosted_key_that_is_refused_is_no_success(
    hosted: Callable[..., Any], admin: Client, models: ModelServer
) -> None:
    key_id = await hosted(admin)
    await admin.post(f"/api/v1/api-keys/{key_id}/test")
    smallest = models.requests[-1]["model"]
    models.script(smallest, Reply(status=401, message=f"Wrong key {KEY}"))
    answer = await admin.post(f"/api/v1/api-keys/{key_id}/test")
    models.script(smallest, Reply())
    assert answer.status_code == 200
    assert answer.json()["success"] is False
    assert "Wrong key ***" in answer.json()["message"]
    assert KEY not in answer.text
