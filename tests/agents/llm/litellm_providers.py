"""Providers in their own wire formats on loopback, and requests to them through litellm."""

import asyncio
import json
import threading
import time
from importlib import import_module
from typing import Any

import msgspec
import pytest
from aiohttp import web

from app.domain.agents.llm import litellm_adapter
from app.domain.agents.llm.errors import ModelFailed
from app.domain.agents.llm.litellm_adapter import LiteLLMAdapter
from app.domain.agents.llm.protocol import AnswerPart, Target
from tests.agents.llm.answers import KEY, make_request, read_failure, read_parts
from tests.peer import Handler, Peer


class ImportedLibrary(msgspec.Struct):
    """litellm, and the hosts that its import looked up."""

    module: Any
    looked_up: list[Any]


def move_provider(monkeypatch: pytest.MonkeyPatch, provider: str, url: str) -> None:
    """Replaces the addresses of a provider by one on loopback."""
    provider_config = msgspec.structs.replace(
        litellm_adapter.LITELLM_PROVIDERS[provider], chat_url=url, embed_url=url
    )
    monkeypatch.setitem(litellm_adapter.LITELLM_PROVIDERS, provider, provider_config)


class Anthropic(Peer):
    """A model in Anthropic's wire format; the model's name selects its behaviour."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.client_left = asyncio.Event()

    def routes(self) -> dict[str, Handler]:
        return {"POST /v1/messages": self._answer}

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        model = body["model"]
        if model.isdigit():
            error_body = {"type": "error", "error": {"type": "odd", "message": "not today"}}
            return web.json_response(error_body, status=int(model), headers={"Retry-After": "7"})
        if not body.get("stream"):
            return web.json_response(_WHOLE)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for position, event in enumerate(_EVENTS):
            if model == f"error-at-{position}":
                error = {"type": "overloaded_error", "message": "Overloaded"}
                await _send_event(response, {"type": "error", "error": error})
                return response
            if model == f"end-at-{position}":
                return response
            if model == f"drop-at-{position}" and request.transport is not None:
                request.transport.abort()
                return response
            if model == f"wait-at-{position}":
                await _wait_until_left(request, self.client_left)
                return response
            await _send_event(response, event)
        return response


async def _send_event(response: web.StreamResponse, event: dict[str, Any]) -> None:
    await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())


def _start_block(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _block_delta(index: int, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _stop_block(index: int) -> dict[str, Any]:
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
    _start_block(0, type="text", text=""),
    _block_delta(0, type="text_delta", text="Let me"),
    _block_delta(0, type="text_delta", text=" see."),
    _stop_block(0),
    _start_block(1, type="tool_use", id="tu_1", name="weather", input={}),
    _block_delta(1, type="input_json_delta", partial_json='{"at"'),
    _block_delta(1, type="input_json_delta", partial_json=': "Ulm"}'),
    _stop_block(1),
    _start_block(2, type="tool_use", id="tu_2", name="weather", input={}),
    _block_delta(2, type="input_json_delta", partial_json='{"at": "Bonn"}'),
    _stop_block(2),
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


class Google(Peer):
    """The chats of Gemini and Cohere; the model's name selects the behaviour."""

    def __init__(self) -> None:
        super().__init__()
        self.client_left = asyncio.Event()
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
            await _wait_until_left(request, self.client_left)
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
        self.requests.append((request.path_qs, await request.json()))
        message = {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}]}
        usage = {"tokens": {"input_tokens": 5, "output_tokens": 6}}
        answer = {"id": "c", "finish_reason": "COMPLETE", "message": message, "usage": usage}
        return web.json_response(answer)


def _candidate(part: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0, **fields}]}


async def _send_data(response: web.StreamResponse, data: dict[str, Any]) -> None:
    await response.write(b"data: " + json.dumps(data).encode() + b"\r\n\r\n")


async def _wait_until_left(request: web.Request, client_left: asyncio.Event) -> None:
    deadline = time.monotonic() + 3
    while request.transport is not None and not request.transport.is_closing():
        if time.monotonic() > deadline:
            return
        await asyncio.sleep(0.01)
    client_left.set()


def make_target(model: str) -> Target:
    return Target(model, model.partition("/")[0], KEY)


async def wait_for_library_threads() -> None:
    """Waits for litellm's threads, which format tracebacks: CPython 3.11 raises a SystemError when
    pytest formats one at the same time.
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


async def request_parts(adapter: LiteLLMAdapter, model: str, **fields: Any) -> list[AnswerPart]:
    parts = await read_parts(adapter, make_target(model), make_request(**fields))
    await wait_for_library_threads()
    return parts


async def request_failure(
    adapter: LiteLLMAdapter, model: str, **fields: Any
) -> tuple[ModelFailed, list[AnswerPart]]:
    try:
        return await read_failure(adapter, make_target(model), make_request(**fields))
    finally:
        await wait_for_library_threads()
