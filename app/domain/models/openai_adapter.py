"""OpenAI's wire format over a pooled connection: the short way to a model."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import msgspec

from app.domain.models.errors import ModelFailed, Reason
from app.domain.models.protocol import Ask, Embeddings, Message, Piece, Target, Text, ToolCall, Used
from app.kit.egress import BlockedAddress, Egress, EgressError, EgressTimeout
from app.kit.texts import storable

TOTAL_SECONDS = 600.0
IDLE_SECONDS = 120.0
_MAX_BYTES = 32 * 1024 * 1024
_MAX_LINE = 1024 * 1024
_MAX_TEXT = 1_000_000
_MAX_WHOLE = 8 * 1024 * 1024
_MAX_LISTED = 1000
MOST_CALLS = 64
_END_SECONDS = 0.2
_OK = 200
_ERROR_CHARS = 500
_RATE_LIMITED = 429
_SERVER_ERROR = 500
_TIMEOUTS = {408, 504}
_DONE = b"[DONE]"
# OpenAI's own reasoning models take no temperature.
_REASONING = ("o1", "o3", "o4", "gpt-5")


class _FunctionDelta(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _CallDelta(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _FunctionDelta = msgspec.field(default_factory=_FunctionDelta)


class _Content(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(msgspec.Struct):
    delta: _Content | None = None
    message: _Content | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Completion(msgspec.Struct):
    """A whole answer, or one chunk of a streamed one: they differ in `message` and `delta`."""

    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: Any = None


class _Vector(msgspec.Struct):
    index: int
    embedding: list[float]


class _Vectors(msgspec.Struct):
    data: list[_Vector]
    usage: _Usage = msgspec.field(default_factory=_Usage)


class _Named(msgspec.Struct):
    id: str


class _Listing(msgspec.Struct):
    data: list[_Named]


_completion = msgspec.json.Decoder(_Completion)
_listing = msgspec.json.Decoder(_Listing)
_vectors = msgspec.json.Decoder(_Vectors)


class OpenAIAdapter:
    def __init__(self, egress: Egress) -> None:
        self._egress = egress

    async def answer(self, target: Target, ask: Ask) -> AsyncGenerator[Piece, None]:
        body = msgspec.json.encode(_request(target, ask))
        calls = _Calls()
        path = "/chat/completions"
        async with self._open(target, "POST", path, body, TOTAL_SECONDS, live=ask.live) as response:
            if not ask.live or "event-stream" not in response.headers.get("Content-Type", ""):
                raw = await _read(target, response, _MAX_WHOLE)
                whole = _decode(_completion, target, raw)
                for piece in calls.pieces(target, whole):
                    yield piece
            else:
                async for events in _events(target, response):
                    pieces, failure = calls.together(target, events)
                    for piece in pieces:
                        yield piece
                    if failure is not None:
                        raise failure
        if not calls.finished:
            raise ModelFailed(target.model, "broken", f"{target.model} broke off its answer")
        for call in calls.whole():
            yield call

    async def embed(self, target: Target, texts: list[str]) -> Embeddings:
        body = msgspec.json.encode({"model": target.name_at_provider, "input": texts})
        async with self._open(target, "POST", "/embeddings", body, TOTAL_SECONDS) as response:
            found = _decode(_vectors, target, await _read(target, response))
        ordered = sorted(found.data, key=lambda item: item.index)
        if [item.index for item in ordered] != list(range(len(texts))):
            raise ModelFailed(target.model, "broken", f"{target.model} left out embeddings")
        used = Used.reported(found.usage.prompt_tokens, 0)
        return Embeddings([item.embedding for item in ordered], used.prompt_tokens)

    async def models(self, target: Target, seconds: float) -> list[str]:
        """The names that an endpoint itself lists."""
        async with self._open(target, "GET", "/models", None, seconds) as response:
            listed = _decode(_listing, target, await _read(target, response, _MAX_LINE))
        return [item.id for item in listed.data[:_MAX_LISTED]]

    async def close(self) -> None:
        await self._egress.close()

    @asynccontextmanager
    async def _open(
        self,
        target: Target,
        method: str,
        path: str,
        body: bytes | None,
        seconds: float,
        *,
        live: bool = False,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {"Content-Type": "application/json"}
        if target.api_key:
            headers["Authorization"] = f"Bearer {target.api_key}"
        answered = False
        try:
            async with self._egress.open(
                method,
                f"{(target.base_url or '').rstrip('/')}{path}",
                headers=headers,
                body=body,
                timeout_seconds=seconds,
                # A whole answer comes at once, after however long it takes.
                idle_seconds=IDLE_SECONDS if live else None,
            ) as response:
                answered = True
                if response.status != _OK:
                    raise _refusal(target, response, await _read(target, response))
                yield response
        except EgressTimeout as error:
            raise ModelFailed(target.model, "timeout", f"{target.model}: {error}") from error
        except BlockedAddress as error:
            raise ModelFailed(target.model, "refused", f"{target.model}: {error}") from error
        except EgressError as error:
            reason: Reason = "broken" if answered else "unreachable"
            raise ModelFailed(target.model, reason, f"{target.model}: {error}") from error


def too_many_calls(target: Target) -> ModelFailed:
    """Each costs a row and a step, whether it is run or not."""
    told = f"{target.model} called more than {MOST_CALLS} tools at once"
    return ModelFailed(target.model, "broken", told)


class CallParts:
    """A tool call of which parts have arrived."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []

    def whole(self, index: int) -> ToolCall:
        name, arguments = self.name, "".join(self.arguments)
        call_id = self.id or f"call_{index}"
        return ToolCall(call_id, storable(name), storable(arguments))


class _Calls:
    """Puts tool calls together, which arrive in fragments, and notes whether the end was told."""

    def __init__(self) -> None:
        self.finished = False
        self._chars = 0
        self._calls: dict[int, CallParts] = {}

    def together(
        self, target: Target, events: list[bytes]
    ) -> tuple[list[Piece], ModelFailed | None]:
        """What came in one packet, its text in one piece; up to where it fails, if it does."""
        pieces: list[Piece] = []
        try:
            for event in events:
                for piece in self.pieces(target, _decode(_completion, target, event)):
                    last = pieces[-1] if pieces else None
                    if isinstance(piece, Text) and isinstance(last, Text):
                        pieces[-1] = Text(last.text + piece.text)
                    else:
                        pieces.append(piece)
        except ModelFailed as failure:
            return pieces, failure
        return pieces, None

    def pieces(self, target: Target, answer: _Completion) -> list[Piece]:
        if answer.error is not None:
            code = answer.error.get("code") if isinstance(answer.error, dict) else None
            reason = reason_of(code) if isinstance(code, int) else "refused"
            raise ModelFailed(target.model, reason, _words(target, answer.error))
        pieces: list[Piece] = []
        for choice in answer.choices[:1]:
            content = choice.delta or choice.message or _Content()
            text = content.content or content.refusal
            if text:
                # Postgres holds no NUL, and neither does any text that people write.
                pieces.append(Text(text.replace("\0", "")))
                self._count(target, text)
            for position, delta in enumerate(content.tool_calls or ()):
                self._add(target, delta, position if choice.message else self._index(delta))
            if choice.finish_reason:
                self.finished = True
        if answer.usage is not None:
            pieces.append(Used.reported(answer.usage.prompt_tokens, answer.usage.completion_tokens))
        return pieces

    def _count(self, target: Target, text: str) -> None:
        """What is said is stored and read again at every turn: it must come to an end."""
        self._chars += len(text)
        if self._chars > _MAX_TEXT:
            raise ModelFailed(target.model, "broken", f"{target.model} answers without end")

    def _add(self, target: Target, delta: _CallDelta, index: int) -> None:
        self._count(target, delta.function.arguments or "")
        call = self._calls.setdefault(index, CallParts())
        if len(self._calls) > MOST_CALLS:
            raise too_many_calls(target)
        call.id = delta.id or call.id
        call.name = delta.function.name or call.name
        call.arguments.append(delta.function.arguments or "")

    def _index(self, delta: _CallDelta) -> int:
        """Some leave it out: then an id begins a new call, and what has none goes on."""
        if delta.index is not None:
            return delta.index
        last = max(self._calls, default=-1)
        return last + 1 if delta.id or last < 0 else last

    def whole(self) -> list[ToolCall]:
        return [call.whole(index) for index, call in sorted(self._calls.items())]


def _request(target: Target, ask: Ask) -> dict[str, Any]:
    name = target.name_at_provider
    request = {"model": name, **asked(ask)}
    at_openai = target.provider == "openai"
    request["max_completion_tokens" if at_openai else "max_tokens"] = ask.max_tokens
    if not (at_openai and name.startswith(_REASONING)):
        request["temperature"] = ask.temperature
    return request


def asked(ask: Ask) -> dict[str, Any]:
    """What every provider is told in the same words."""
    request: dict[str, Any] = {"messages": [_message(message) for message in ask.messages]}
    if ask.functions:
        request["tools"] = [
            {"type": "function", "function": msgspec.to_builtins(function)}
            for function in ask.functions
        ]
        if not ask.may_call:
            request["tool_choice"] = "none"
    if ask.response_format is not None:
        request["response_format"] = ask.response_format
    if ask.live:
        request |= {"stream": True, "stream_options": {"include_usage": True}}
    return request


def _message(message: Message) -> dict[str, Any]:
    content = None if message.tool_calls and not message.content else message.content
    found: dict[str, Any] = {"role": message.role, "content": content}
    if message.tool_calls:
        found["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        found["tool_call_id"] = message.tool_call_id
    return found


async def _events(target: Target, response: aiohttp.ClientResponse) -> AsyncIterator[list[bytes]]:
    """The data of events, packet by packet: several may come in one, and one in several."""
    total, unfinished, waiting = 0, list[bytes](), 0
    async for packet in response.content.iter_any():
        total += len(packet)
        head, newline, tail = packet.rpartition(b"\n")
        if not newline:
            unfinished.append(packet)
            waiting += len(packet)
        if total > _MAX_BYTES or waiting > _MAX_LINE:
            raise ModelFailed(target.model, "broken", f"{target.model} answers without end")
        if not newline:
            continue
        lines = b"".join([*unfinished, head]).split(b"\n")
        unfinished, waiting = [tail], len(tail)
        events = [line[5:].strip() for line in lines if line.startswith(b"data:")]
        if _DONE in events:
            yield list(filter(None, events[: events.index(_DONE)]))
            await _finish(response)
            return
        yield list(filter(None, events))


async def _finish(response: aiohttp.ClientResponse) -> None:
    """A connection whose answer was read to its end is used again; the end is due any moment."""
    with suppress(TimeoutError, aiohttp.ClientError):
        if not response.content.at_eof():
            async with asyncio.timeout(_END_SECONDS):
                await response.content.readany()


def _decode(decoder: msgspec.json.Decoder[Any], target: Target, raw: bytes) -> Any:
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelFailed(
            target.model, "broken", f"{target.model} does not speak OpenAI's wire format"
        ) from error


async def _read(target: Target, response: aiohttp.ClientResponse, most: int = _MAX_BYTES) -> bytes:
    content = bytearray()
    async for packet in response.content.iter_any():
        content += packet
        if len(content) > most:
            raise ModelFailed(target.model, "broken", f"{target.model} answers without end")
    return bytes(content)


def _refusal(target: Target, response: aiohttp.ClientResponse, raw: bytes) -> ModelFailed:
    try:
        told = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        told = None
    return ModelFailed(
        target.model,
        reason_of(response.status),
        _words(target, told, f"the provider answered {response.status}"),
        status=response.status,
        retry_after=seconds_of(response.headers.get("Retry-After")),
    )


def reason_of(status: int) -> Reason:
    if status == _RATE_LIMITED:
        return "rate_limited"
    if status in _TIMEOUTS:
        return "timeout"
    return "unavailable" if status >= _SERVER_ERROR else "refused"


def _words(target: Target, told: Any, otherwise: str = "the provider reports an error") -> str:
    """The provider's own words, wherever it put them; without the key, should it repeat that."""
    inner = told.get("error", told) if isinstance(told, dict) else told
    message = inner.get("message") if isinstance(inner, dict) else inner
    if not isinstance(message, str) or not message.strip():
        message = otherwise
    return without_key(target, f"{target.model}: {message}")


def without_key(target: Target, text: str) -> str:
    if target.api_key:
        text = text.replace(target.api_key, "***")
    return text.replace("\0", "")[:_ERROR_CHARS]


def seconds_of(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None
