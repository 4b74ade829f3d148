"""Calls the providers that do not speak OpenAI's wire format, through litellm.

The import of litellm takes seconds and 165 MiB, so it happens in a thread at the first request.
Each request passes the tenant's key and the provider's address: otherwise litellm would take both
from the environment of this process.
"""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, Self

import msgspec

from app.kit.texts import storable
from app.net.retry_after import parse_retry_after

from .answer_builder import AnswerBuilder
from .errors import ModelFailed, Reason
from .openai_adapter import IDLE_SECONDS
from .openai_audio import EXTENSIONS
from .openai_requests import common_fields
from .protocol import AnswerPart, Embeddings, ModelRequest, Target, Text, Transcription, UsedTokens
from .provider_failures import answer_incomplete, check_mp3, embeddings_missing, mask_key, reason_of


class LiteLLMProvider(msgspec.Struct, frozen=True):
    """litellm's name of a provider, and the provider's addresses."""

    name: str
    chat_url: str | None = None
    embed_url: str | None = None
    audio_url: str | None = None
    # False when litellm cannot read the provider's streams: then the answer is requested whole.
    can_stream: bool = True
    # `drop_params` leaves out parameters that the provider does not support.
    options: dict[str, Any] = msgspec.field(default_factory=lambda: {"drop_params": True})


LITELLM_PROVIDERS: Final = {
    "anthropic": LiteLLMProvider("anthropic", "https://api.anthropic.com"),
    "gemini": LiteLLMProvider(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        "https://generativelanguage.googleapis.com/v1beta",
    ),
    "cohere": LiteLLMProvider(
        "cohere",
        "https://api.cohere.com/v2/chat",
        "https://api.cohere.com/v2/embed",
        can_stream=False,
    ),
    # As "ai21", litellm knows only some of the models. With `drop_params` it would drop
    # `max_retries` and repeat a request after a 422.
    "ai21": LiteLLMProvider(
        "ai21_chat",
        "https://api.ai21.com/studio/v1",
        options={
            "additional_drop_params": ["stream_options"],
            "allowed_openai_params": ["max_retries"],
        },
    ),
    "replicate": LiteLLMProvider("replicate", "https://api.replicate.com/v1"),
    "elevenlabs": LiteLLMProvider("elevenlabs", audio_url="https://api.elevenlabs.io"),
}

# By the names of exceptions of httpx and litellm; the first match counts.
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
_MAX_CAUSES = 20
_DEFAULT_VOICE = "alloy"
_LIBRARY_TEXT = re.compile(
    r"(litellm\.)?\w+(Error|Exception)( - |: )|\. Handle with `litellm.*", re.DOTALL
)


class LiteLLMAdapter:
    def __init__(self) -> None:
        self._library: Any = None
        self._importing: asyncio.Task[Any] | None = None

    async def answer(
        self, target: Target, request: ModelRequest
    ) -> AsyncGenerator[AnswerPart, None]:
        provider = LITELLM_PROVIDERS[target.provider]
        if not provider.can_stream:
            request = msgspec.structs.replace(request, is_streamed=False)
        is_streamed = request.is_streamed
        url = _require_url(target, provider.chat_url, "chat models")
        library = await self._litellm()
        arguments = {**_common_arguments(target, url), **common_fields(request)}
        arguments |= {"temperature": request.temperature, "max_tokens": request.max_tokens}
        builder = AnswerBuilder(target)
        used: list[UsedTokens] = []
        answer: Any = None
        lines: _WatchedLines | None = None
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                answer = await library.acompletion(**arguments)
                if is_streamed and provider.name == "gemini":
                    lines = await _watch_lines(answer)
            async for chunk in _chunks(answer, is_streamed=is_streamed):
                used += _used_tokens(chunk)
                for text in _texts(chunk, builder):
                    yield text
        except ModelFailed:
            raise
        except Exception as error:
            raise _failure(target, error, has_answer=answer is not None) from error
        finally:
            await _close(answer)
        if is_streamed:
            _check_end(target, answer, lines)
        # Only after the check: litellm reports its own count even for an incomplete answer.
        for tokens in used:
            yield tokens
        for call in builder.tool_calls():
            yield call

    async def embed(self, target: Target, texts: list[str]) -> Embeddings:
        embed_url = LITELLM_PROVIDERS[target.provider].embed_url
        url = _require_url(target, embed_url, "embeddings")
        library = await self._litellm()
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                answer = await library.aembedding(**_common_arguments(target, url), input=texts)
            # In the order of the texts: litellm gives every embedding of Gemini the index 0.
            vectors = [list(map(float, item["embedding"])) for item in answer.data]
            prompt_tokens = int(getattr(answer.usage, "prompt_tokens", 0) or 0)
        except Exception as error:
            raise _failure(target, error, has_answer=False) from error
        if len(vectors) != len(texts):
            raise embeddings_missing(target)
        return Embeddings(vectors, UsedTokens.from_provider(prompt_tokens, 0).prompt_tokens)

    async def transcribe(self, target: Target, audio: bytes, media_type: str) -> Transcription:
        arguments = _audio_arguments(target)
        library = await self._litellm()
        file = (f"audio.{EXTENSIONS[media_type]}", audio, media_type)
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                answer = await library.atranscription(**arguments, file=file)
            return Transcription(storable(str(answer.text)))
        except Exception as error:
            raise _failure(target, error, has_answer=False) from error

    async def speak(self, target: Target, text: str, voice: str | None) -> bytes:
        arguments = {**_audio_arguments(target), "voice": voice or _DEFAULT_VOICE}
        library = await self._litellm()
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                answer = await library.aspeech(**arguments, input=text, response_format="mp3")
            content = bytes(answer.content)
        except Exception as error:
            raise _failure(target, error, has_answer=False) from error
        return check_mp3(target, content)

    async def close(self) -> None:
        if self._importing is not None:
            self._importing.cancel()

    async def _litellm(self) -> Any:
        if self._library is None:
            if self._importing is None or self._importing.done():
                self._importing = asyncio.create_task(asyncio.to_thread(_import_litellm))
            self._library = await asyncio.shield(self._importing)
        return self._library


def _import_litellm() -> Any:
    # Otherwise the import downloads newer prices, and blocks until it has them.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    library: Any = import_module("litellm")
    library.telemetry = False
    library.suppress_debug_info = True
    # litellm's aiohttp transport treats a broken connection as the end of the answer.
    library.disable_aiohttp_transport = True
    return library


def _require_url(target: Target, url: str | None, feature: str) -> str:
    if url is None:
        message = f"{target.model}: the provider {target.provider} has no {feature}"
        raise ModelFailed(target.model, "refused", message)
    return url


def _audio_arguments(target: Target) -> dict[str, Any]:
    audio_url = LITELLM_PROVIDERS[target.provider].audio_url
    return _common_arguments(target, _require_url(target, audio_url, "speech models"))


def _common_arguments(target: Target, url: str) -> dict[str, Any]:
    provider = LITELLM_PROVIDERS[target.provider]
    return {
        "model": f"{provider.name}/{target.name_at_provider}",
        "api_key": target.api_key,
        "api_base": url,
        "timeout": IDLE_SECONDS,
        "num_retries": 0,
        "max_retries": 0,
        **provider.options,
    }


class _GeminiCandidate(msgspec.Struct):
    finish_reason: str | None = msgspec.field(default=None, name="finishReason")


class _GeminiError(msgspec.Struct):
    code: int = 500
    message: str = ""


class _GeminiEvent(msgspec.Struct):
    candidates: list[_GeminiCandidate] = []
    prompt_feedback: Any = msgspec.field(default=None, name="promptFeedback")
    error: _GeminiError | None = None


_event_decoder = msgspec.json.Decoder(_GeminiEvent)


class _WatchedLines:
    """Passes on the lines of a Gemini stream and notes its end and its error, which litellm does
    not report.
    """

    def __init__(self, lines: Any) -> None:
        self.is_finished = False
        self.error: _GeminiError | None = None
        self._lines = lines

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        line = str(await anext(self._lines))
        with suppress(msgspec.DecodeError):
            event = _event_decoder.decode(line.removeprefix("data:"))
            has_reason = any(candidate.finish_reason for candidate in event.candidates)
            self.is_finished |= bool(event.prompt_feedback) or has_reason
            self.error = event.error or self.error
        return line

    async def aclose(self) -> None:
        await self._lines.aclose()


async def _watch_lines(answer: Any) -> _WatchedLines:
    stream = await answer.fetch_stream()
    stream.streaming_response = lines = _WatchedLines(stream.streaming_response)
    return lines


def _check_end(target: Target, answer: Any, lines: _WatchedLines | None) -> None:
    if lines is not None and lines.error is not None:
        message = mask_key(target, f"{target.model}: {lines.error.message}")
        raise ModelFailed(target.model, reason_of(lines.error.code), message)
    if not (answer.received_finish_reason if lines is None else lines.is_finished):
        raise answer_incomplete(target)


async def _chunks(answer: Any, *, is_streamed: bool) -> AsyncGenerator[Any, None]:
    if not is_streamed:
        yield answer
        return
    while True:
        # litellm does not pass the timeout to every provider's client.
        async with asyncio.timeout(IDLE_SECONDS):
            try:
                chunk = await anext(answer)
            except StopAsyncIteration:
                return
        yield chunk


async def _close(answer: Any) -> None:
    """Closes the connection of an unfinished stream, which litellm leaves open."""
    inner = getattr(answer, "completion_stream", None)
    lines = getattr(inner, "streaming_response", None)
    for stream in (answer, inner, lines, getattr(inner, "response", None)):
        close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
        if close is not None:
            with suppress(Exception):
                closing = close()
                if asyncio.iscoroutine(closing):
                    await closing


def _texts(answer: Any, builder: AnswerBuilder) -> list[Text]:
    """Returns the texts of a chunk and adds its tool calls to the builder."""
    texts: list[Text] = []
    for choice in list(answer.choices)[:1]:
        content = getattr(choice, "delta", None) or getattr(choice, "message", None)
        text = getattr(content, "content", None)
        if text:
            texts.append(Text(storable(str(text))))
            builder.count_chars(texts[-1].text)
        for position, delta in enumerate(getattr(content, "tool_calls", None) or ()):
            index = getattr(delta, "index", None)
            index = position if index is None else index
            function = delta.function
            builder.add_call(index, delta.id, function.name, function.arguments)
    return texts


def _used_tokens(answer: Any) -> list[UsedTokens]:
    usage = getattr(answer, "usage", None)
    if usage is None:
        return []
    prompt_tokens, completion_tokens = usage.prompt_tokens or 0, usage.completion_tokens or 0
    return [UsedTokens.from_provider(int(prompt_tokens), int(completion_tokens))]


def _failure(target: Target, error: Exception, *, has_answer: bool) -> ModelFailed:
    """Reports the root cause, because litellm's own exceptions often misstate it."""
    causes = list(_causes(error))
    responses = (cause.response for cause in causes if type(cause).__name__ == "HTTPStatusError")
    response = next(responses, None)
    if response is not None:
        return ModelFailed(
            target.model,
            reason_of(response.status_code),
            mask_key(target, f"{target.model}: {_provider_message(error, response)}"),
            status=response.status_code,
            retry_after=parse_retry_after(response.headers.get("retry-after")),
        )
    names = {base.__name__ for cause in causes for base in type(cause).__mro__}
    default: Reason = "broken" if has_answer else "refused"
    reason = next((reason for name, reason in _REASONS.items() if name in names), default)
    is_timeout = reason == "timeout"
    message = f"no answer within {IDLE_SECONDS:g} s" if is_timeout else _provider_message(error)
    return ModelFailed(target.model, reason, mask_key(target, f"{target.model}: {message}"))


def _causes(error: BaseException | None) -> Iterator[Any]:
    for _ in range(_MAX_CAUSES):
        # A ModelFailed here belongs to an earlier model, of which this one is the fallback.
        if error is None or isinstance(error, ModelFailed):
            return
        yield error
        error = error.__cause__ or error.__context__


def _provider_message(error: Exception, response: Any = None) -> str:
    """Returns the message of the provider's error body, or else litellm's without its prefix."""
    with suppress(Exception):
        body = response.json()
        content = body.get("error", body)
        return str(content.get("message") or content["detail"])
    original = getattr(error, "original_exception", None) or error
    message = str(getattr(original, "message", "") or original).split("\n")[0]
    return _LIBRARY_TEXT.sub("", message)
