"""Every provider that does not speak OpenAI's wire format, through litellm.

litellm takes seconds and 165 MiB to import, so it is imported when the first of its models is
asked, in a thread. Each question names the key that the tenant gave and the address of its
provider: otherwise litellm would take both from the environment of this process.
"""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, Self

import msgspec

from app.domain.models.errors import ModelFailed, Reason
from app.domain.models.openai_adapter import (
    IDLE_SECONDS,
    MOST_CALLS,
    CallParts,
    asked,
    reason_of,
    seconds_of,
    too_many_calls,
    without_key,
)
from app.domain.models.protocol import Ask, Embeddings, Piece, Target, Text, Used
from app.kit.texts import storable


class Hosted(msgspec.Struct, frozen=True):
    """How litellm calls a provider, and where its questions go."""

    name: str
    chat: str
    embed: str | None = None
    # Where litellm does not understand the provider's streams, the answer is asked for as a whole.
    streams: bool = True
    # What the provider does not understand is left out.
    options: dict[str, Any] = msgspec.field(default_factory=lambda: {"drop_params": True})


HOSTED: Final = {
    "anthropic": Hosted("anthropic", "https://api.anthropic.com"),
    "gemini": Hosted(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        "https://generativelanguage.googleapis.com/v1beta",
    ),
    "cohere": Hosted(
        "cohere",
        "https://api.cohere.com/v2/chat",
        "https://api.cohere.com/v2/embed",
        streams=False,
    ),
    # By its other name litellm knows only some of the models. With `drop_params` it would ask
    # again after a 422, and leave out that it shall ask only once.
    "ai21": Hosted(
        "ai21_chat",
        "https://api.ai21.com/studio/v1",
        options={
            "additional_drop_params": ["stream_options"],
            "allowed_openai_params": ["max_retries"],
        },
    ),
    "replicate": Hosted("replicate", "https://api.replicate.com/v1"),
}

# By the names of the exceptions of httpx and of litellm; the first that is found counts.
_REASONS: dict[str, Reason] = {
    "TimeoutError": "timeout",
    "TimeoutException": "timeout",
    "APITimeoutError": "timeout",
    "Timeout": "timeout",
    "ConnectError": "unreachable",
    "TransportError": "broken",
    "JSONDecodeError": "broken",
    "RateLimitError": "rate_limited",
    "ServiceUnavailableError": "unavailable",
    "InternalServerError": "unavailable",
    "BadGatewayError": "unavailable",
}
_MOST_CAUSES = 20
_OF_LIBRARY = re.compile(
    r"(litellm\.)?\w+(Error|Exception)( - |: )|\. Handle with `litellm.*", re.DOTALL
)


class LiteLLMAdapter:
    def __init__(self) -> None:
        self._library: Any = None
        self._importing: asyncio.Task[Any] | None = None

    async def answer(self, target: Target, ask: Ask) -> AsyncGenerator[Piece, None]:
        hosted = HOSTED[target.provider]
        if not hosted.streams:
            ask = msgspec.structs.replace(ask, live=False)
        library = await self._litellm()
        request = {**_common(target, hosted.chat), **asked(ask)}
        request |= {"temperature": ask.temperature, "max_tokens": ask.max_tokens}
        calls: dict[int, CallParts] = {}
        used: list[Used] = []
        answer: Any = None
        lines: _Lines | None = None
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                answer = await library.acompletion(**request)
                lines = await _read_along(answer) if ask.live and hosted.name == "gemini" else None
            async for chunk in _chunks(answer, live=ask.live):
                used += _used(chunk)
                for text in _texts(target, chunk, calls):
                    yield text
        except ModelFailed:
            raise
        except Exception as error:
            raise _failure(target, error, begun=answer is not None) from error
        finally:
            await _close(answer)
        if ask.live:
            _check_end(target, answer, lines)
        # litellm counts what was used itself, even where the answer has broken off.
        for count in used:
            yield count
        for index, call in sorted(calls.items()):
            yield call.whole(index)

    async def embed(self, target: Target, texts: list[str]) -> Embeddings:
        address = HOSTED[target.provider].embed
        if address is None:
            message = f"{target.model}: the provider {target.provider} has no embeddings"
            raise ModelFailed(target.model, "refused", message)
        library = await self._litellm()
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                answer = await library.aembedding(**_common(target, address), input=texts)
            # In the order of the texts; litellm gives each of Gemini's the index 0.
            vectors = [list(map(float, item["embedding"])) for item in answer.data]
            used = int(getattr(answer.usage, "prompt_tokens", 0) or 0)
        except Exception as error:
            raise _failure(target, error, begun=False) from error
        if len(vectors) != len(texts):
            raise ModelFailed(target.model, "broken", f"{target.model} left out embeddings")
        return Embeddings(vectors, Used.reported(used, 0).prompt_tokens)

    async def close(self) -> None:
        if self._importing is not None:
            self._importing.cancel()

    async def _litellm(self) -> Any:
        if self._library is None:
            if self._importing is None or self._importing.done():
                self._importing = asyncio.create_task(asyncio.to_thread(_import))
            self._library = await asyncio.shield(self._importing)
        return self._library


def _import() -> Any:
    # Otherwise the import asks the network for newer prices, and waits for it.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    library: Any = import_module("litellm")
    library.telemetry = False
    library.suppress_debug_info = True
    # Its other transport takes a connection that broke for an answer that ended.
    library.disable_aiohttp_transport = True
    return library


def _common(target: Target, address: str) -> dict[str, Any]:
    hosted = HOSTED[target.provider]
    return {
        "model": f"{hosted.name}/{target.name_at_provider}",
        "api_key": target.api_key,
        "api_base": address,
        "timeout": IDLE_SECONDS,
        "num_retries": 0,
        "max_retries": 0,
        **hosted.options,
    }


class _Candidate(msgspec.Struct):
    finish: str | None = msgspec.field(default=None, name="finishReason")


class _Error(msgspec.Struct):
    code: int = 500
    message: str = ""


class _Event(msgspec.Struct):
    candidates: list[_Candidate] = []
    blocked: Any = msgspec.field(default=None, name="promptFeedback")
    error: _Error | None = None


_event = msgspec.json.Decoder(_Event)


class _Lines:
    """The lines of a stream of Gemini, read along: litellm tells neither its end nor its errors."""

    def __init__(self, lines: Any) -> None:
        self.finished = False
        self.error: _Error | None = None
        self._lines = lines

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        line = str(await anext(self._lines))
        with suppress(msgspec.DecodeError):
            event = _event.decode(line.removeprefix("data:"))
            candidates = event.candidates
            self.finished |= bool(event.blocked) or any(one.finish for one in candidates)
            self.error = event.error or self.error
        return line

    async def aclose(self) -> None:
        await self._lines.aclose()


async def _read_along(answer: Any) -> _Lines:
    stream = await answer.fetch_stream()
    stream.streaming_response = lines = _Lines(stream.streaming_response)
    return lines


def _check_end(target: Target, answer: Any, lines: _Lines | None) -> None:
    if lines is not None and lines.error is not None:
        words = without_key(target, f"{target.model}: {lines.error.message}")
        raise ModelFailed(target.model, reason_of(lines.error.code), words)
    if not (answer.received_finish_reason if lines is None else lines.finished):
        raise ModelFailed(target.model, "broken", f"{target.model} broke off its answer")


async def _chunks(answer: Any, *, live: bool) -> AsyncGenerator[Any, None]:
    if not live:
        yield answer
        return
    while True:
        # Not each of the providers' clients is told the time-out.
        async with asyncio.timeout(IDLE_SECONDS):
            try:
                chunk = await anext(answer)
            except StopAsyncIteration:
                return
        yield chunk


async def _close(answer: Any) -> None:
    """The library leaves the connection of an unfinished stream open."""
    inner = getattr(answer, "completion_stream", None)
    lines = getattr(inner, "streaming_response", None)
    for stream in (answer, inner, lines, getattr(inner, "response", None)):
        close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
        if close is not None:
            with suppress(Exception):
                ended = close()
                if asyncio.iscoroutine(ended):
                    await ended


def _texts(target: Target, answer: Any, calls: dict[int, CallParts]) -> list[Text]:
    texts: list[Text] = []
    for choice in list(answer.choices)[:1]:
        content = getattr(choice, "delta", None) or getattr(choice, "message", None)
        text = getattr(content, "content", None)
        if text:
            texts.append(Text(storable(str(text))))
        for position, delta in enumerate(getattr(content, "tool_calls", None) or ()):
            index = getattr(delta, "index", None)
            call = calls.setdefault(position if index is None else index, CallParts())
            if len(calls) > MOST_CALLS:
                raise too_many_calls(target)
            call.id = delta.id or call.id
            call.name = delta.function.name or call.name
            call.arguments.append(delta.function.arguments or "")
    return texts


def _used(answer: Any) -> list[Used]:
    usage = getattr(answer, "usage", None)
    if usage is None:
        return []
    return [Used.reported(int(usage.prompt_tokens or 0), int(usage.completion_tokens or 0))]


def _failure(target: Target, error: Exception, *, begun: bool) -> ModelFailed:
    """What went wrong at the bottom of it: litellm's own exceptions often tell something else."""
    causes = list(_causes(error))
    refusal = next((it.response for it in causes if type(it).__name__ == "HTTPStatusError"), None)
    if refusal is not None:
        return ModelFailed(
            target.model,
            reason_of(refusal.status_code),
            without_key(target, f"{target.model}: {_words(error, refusal)}"),
            status=refusal.status_code,
            retry_after=seconds_of(refusal.headers.get("retry-after")),
        )
    names = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
    otherwise: Reason = "broken" if begun else "refused"
    reason = next((reason for name, reason in _REASONS.items() if name in names), otherwise)
    words = _words(error) if reason != "timeout" else f"no answer within {IDLE_SECONDS:g} s"
    return ModelFailed(target.model, reason, without_key(target, f"{target.model}: {words}"))


def _causes(error: BaseException | None) -> Iterator[Any]:
    for _ in range(_MOST_CAUSES):
        # Another model's failure, if this one is asked because of it.
        if error is None or isinstance(error, ModelFailed):
            return
        yield error
        error = error.__cause__ or error.__context__


def _words(error: Exception, refusal: Any = None) -> str:
    """The provider's own words where they can be found, or litellm's without its own names."""
    with suppress(Exception):
        told = refusal.json()
        inner = told.get("error", told)
        return str(inner.get("message") or inner["detail"])
    inmost = getattr(error, "original_exception", None) or error
    words = str(getattr(inmost, "message", "") or inmost).split("\n")[0]
    return _OF_LIBRARY.sub("", words)
