"""A scripted model in OpenAI's wire format: texts, tool calls, failures and delays.

Each model name has a script, which is a list of replies; the last reply is repeated.
"""

import asyncio
import contextlib
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from aiohttp import BodyPartReader, web

from tests.peer import Handler, Peer

# The beginning of an MP3 file.
SPEECH = b"ID3\x04" + bytes(range(200))


class Reply(msgspec.Struct, kw_only=True):
    """One answer of a model.

    A `status` other than 200 refuses with `message`; `raw` replaces the whole body. Before every
    delta the server awaits `hold.wait()` and `delay` seconds. `drop_after` and `error_after` are
    the numbers of deltas before the connection breaks or the stream contains an error. With
    `is_refusal` the texts are a refusal.
    """

    texts: list[str] = msgspec.field(default_factory=lambda: ["Hello", " there"])
    calls: list[tuple[str, Any]] = []
    status: int = 200
    message: str = "refused by the script"
    headers: dict[str, str] = {}
    delay: float = 0.0
    first_delay: float = 0.0
    drop_after: int | None = None
    hold: Any = None
    usage: tuple[int, int] | None = (11, 7)
    raw: bytes | None = None
    error_after: int | None = None
    finish_reason: str | None = None
    is_refusal: bool = False

    @property
    def end(self) -> str:
        return self.finish_reason or ("tool_calls" if self.calls else "stop")


class ModelServer(Peer):
    """`open` counts the requests in progress, `closed_early` those that the caller broke off."""

    cancels_handlers = True

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.open = 0
        self.closed_early = 0
        self._scripts: dict[str, list[Reply]] = defaultdict(lambda: [Reply()])

    def script(self, model: str, *replies: Reply) -> None:
        self._scripts[model] = list(replies)

    def asked(self, model: str) -> list[dict[str, Any]]:
        """Returns the requests for a model."""
        return [request for request in self.requests if request["model"] == model]

    def routes(self) -> dict[str, Handler]:
        return {
            "POST /v1/chat/completions": self._complete,
            "POST /v1/embeddings": self._embed,
            "POST /v1/audio/transcriptions": self._transcribe,
            "POST /v1/audio/speech": self._speak,
            "GET /v1/models": self._models,
        }

    async def start(self) -> None:
        await super().start()
        self.url += "/v1"

    async def _models(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") == "Bearer wrong":
            return web.json_response({"error": {"message": "no such key"}}, status=401)
        return web.json_response({"object": "list", "data": [{"id": "one"}, {"id": "two"}]})

    async def _embed(self, request: web.Request) -> web.Response:
        """The length of each text, and ones."""
        body = await request.json()
        reply = self._next_reply(body, request)
        if reply.status != 200:
            return _refusal(reply)
        if reply.raw is not None:
            return web.Response(body=reply.raw, content_type="application/json")
        ones = [1.0] * (body.get("dimensions", 2) - 1)
        data = [
            {"index": index, "embedding": [float(len(text)), *ones]}
            for index, text in enumerate(body["input"])
        ]
        usage = {"prompt_tokens": len(data), "total_tokens": len(data)}
        return web.json_response({"data": list(reversed(data)), "usage": usage})

    async def _transcribe(self, request: web.Request) -> web.StreamResponse:
        """Records the fields of the form; the file as its name, type and content."""
        body: dict[str, Any] = {}
        async for part in await request.multipart():
            assert isinstance(part, BodyPartReader)
            content = bytes(await part.read())
            if part.filename is None:
                body[part.name or ""] = content.decode()
            else:
                body[part.name or ""] = (part.filename, part.headers["content-type"], content)
        reply = self._next_reply(body, request)
        if reply.status != 200:
            return _refusal(reply)
        if reply.hold is not None:
            await reply.hold.wait()
        if reply.raw is not None:
            return web.Response(body=reply.raw, content_type="application/json")
        return web.json_response({"text": "".join(reply.texts)})

    async def _speak(self, request: web.Request) -> web.StreamResponse:
        reply = self._next_reply(await request.json(), request)
        if reply.status != 200:
            return _refusal(reply)
        return web.Response(body=SPEECH if reply.raw is None else reply.raw)

    def _next_reply(self, body: dict[str, Any], request: web.Request) -> Reply:
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        script = self._scripts[body["model"]]
        return script.pop(0) if len(script) > 1 else script[0]

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        reply = self._next_reply(body, request)
        self.open += 1
        try:
            if reply.first_delay:
                await asyncio.sleep(reply.first_delay)
            if reply.status != 200:
                return _refusal(reply)
            if reply.raw is not None:
                return web.Response(body=reply.raw, content_type="application/json")
            if body.get("stream"):
                return await self._send_stream(request, reply)
            return await self._send_whole(request, reply)
        except (asyncio.CancelledError, ConnectionResetError):
            self.closed_early += 1
            raise
        finally:
            self.open -= 1

    async def _send_whole(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        for _ in reply.texts:
            await _pause(reply)
        if reply.drop_after is not None:
            _drop(request)
        message = {"role": "assistant", **_text_body(reply, "".join(reply.texts))}
        if reply.calls:
            message["tool_calls"] = [_call_body(i, call) for i, call in enumerate(reply.calls)]
        answer: dict[str, Any] = {"choices": [{"message": message, "finish_reason": reply.end}]}
        if reply.usage:
            answer["usage"] = _usage_body(reply)
        return web.json_response(answer)

    async def _send_stream(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        async for chunk in _chunks(request, reply):
            await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response


def _refusal(reply: Reply) -> web.Response:
    error_body = {"error": {"message": reply.message}}
    return web.json_response(error_body, status=reply.status, headers=reply.headers)


async def _chunks(request: web.Request, reply: Reply) -> AsyncIterator[dict[str, Any]]:
    for index, text in enumerate(reply.texts):
        if reply.drop_after == index:
            _drop(request)
        if reply.error_after == index:
            yield {"error": {"message": reply.message}}
        await _pause(reply)
        yield {"choices": [{"delta": _text_body(reply, text), "finish_reason": None}]}
    for index, call in enumerate(reply.calls):
        tool_call = _call_body(index, call)
        arguments = tool_call["function"]["arguments"]
        half = len(arguments) // 2
        head = {**tool_call, "index": index}
        head["function"] = {"name": call[0], "arguments": arguments[:half]}
        tail = {"index": index, "function": {"arguments": arguments[half:]}}
        for part in (head, tail):
            yield {"choices": [{"delta": {"tool_calls": [part]}, "finish_reason": None}]}
    yield {"choices": [{"delta": {}, "finish_reason": reply.end}]}
    if reply.usage:
        yield {"choices": [], "usage": _usage_body(reply)}


def _text_body(reply: Reply, text: str) -> dict[str, Any]:
    return {"content": None, "refusal": text} if reply.is_refusal else {"content": text or None}


async def _pause(reply: Reply) -> None:
    if reply.hold is not None:
        await reply.hold.wait()
    if reply.delay:
        await asyncio.sleep(reply.delay)


def _drop(request: web.Request) -> None:
    """Breaks the connection in the middle of an answer."""
    if request.transport is not None:
        request.transport.abort()
    raise ConnectionResetError


def _call_body(index: int, call: tuple[str, Any]) -> dict[str, Any]:
    name, arguments = call
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {
        "id": f"call_{index}",
        "type": "function",
        "function": {"name": name, "arguments": text},
    }


def _usage_body(reply: Reply) -> dict[str, int]:
    prompt, completion = reply.usage or (0, 0)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[ModelServer]:
    """Runs a server."""
    server = ModelServer()
    await server.start()
    try:
        yield server
    finally:
        await server.close()
