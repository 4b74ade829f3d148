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
from typing import Any, Final

import msgspec

from app.kit.texts import storable
from app.net.retry_after import parse_retry_after

from .answer_builder import AnswerBuilder
from .errors import ModelFailed, Reason, refused_by_provider
from .gemini_stream import WatchedLines, watch_lines
from .openai_adapter import IDLE_SECONDS
from .openai_audio import EXTENSIONS
from .openai_completions import finished
from .openai_requests import common_fields
from .protocol import (
    Accepted,
    AnswerPart,
    EmbeddingInputs,
    Embeddings,
    ModelRequest,
    SpeechOptions,
    Target,
    Text,
    Transcription,
    TranscriptionOptions,
    UsedTokens,
)
from .provider_failures import answer_incomplete, check_mp3, embeddings_missing, mask_key


class LiteLLMProvider(msgspec.Struct, frozen=True):
    """litellm's name of a provider, and the provider's addresses."""

    name: str
    chat_url: str | None = None
    embed_url: str | None = None
    audio_url: str | None = None
    # False when litellm cannot read the provider's streams: then the answer is requested whole.
    can_stream: bool = True
    # Fields of chat requests that litellm claims to know, and leaves out.
    lacks: frozenset[str] = frozenset()
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
        lacks=frozenset({"tool_choice"}),
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
    "replicate": LiteLLMProvider(
        "replicate",
        "https://api.replicate.com/v1",
        lacks=frozenset({"tools", "tool_choice", "seed"}),
    ),
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
# They do not change the answer, so a provider without them gets the request all the same.
_ANNOTATIONS = frozenset({"user", "metadata"})
# Parameters of embeddings and speech that litellm leaves out, or answers in a form of its own.
UNSUPPORTED: Final = frozenset(
    {"dimensions", "instructions", "prompt", "response_format", "timestamp_granularities"}
)
_MAX_CAUSES = 20
_DEFAULT_VOICE = "alloy"
_LIBRARY_TEXT = re.compile(
    r"(litellm\.)?\w+(Error|Exception)( - |: )|\. Handle with `litellm.*", re.DOTALL
)


def _chat_arguments(request: ModelRequest) -> dict[str, Any]:
    arguments = common_fields(request)
    # litellm takes `metadata` for its own log.
    arguments.pop("metadata", None)
    return arguments | {"temperature": request.temperature, "max_tokens": request.max_tokens}


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
        arguments = {**_common_arguments(target, url), **_chat_arguments(request)}
        builder = AnswerBuilder(target)
        used: list[UsedTokens] = []
        finish_reason = ""
        answer: Any = None
        lines: WatchedLines | None = None
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                answer = await library.acompletion(**arguments)
                if is_streamed and provider.name == "gemini":
                    lines = await watch_lines(answer)
            yield Accepted()
            async for chunk in _chunks(answer, is_streamed=is_streamed):
                used += _used_tokens(chunk)
                finish_reason = _finish_reason(chunk) or finish_reason
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
        yield finished(finish_reason, has_calls=builder.last_index >= 0)

    async def embed(
        self, target: Target, inputs: EmbeddingInputs, dimensions: int | None = None
    ) -> Embeddings:
        """`dimensions` is not passed on: see `UNSUPPORTED`."""
        del dimensions
        embed_url = LITELLM_PROVIDERS[target.provider].embed_url
        url = _require_url(target, embed_url, "embeddings")
        library = await self._litellm()
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                answer = await library.aembedding(**_common_arguments(target, url), input=inputs)
            # In the order of the texts: litellm gives every embedding of Gemini the index 0.
            vectors = [list(map(float, item["embedding"])) for item in answer.data]
            prompt_tokens = int(getattr(answer.usage, "prompt_tokens", 0) or 0)
        except Exception as error:
            raise _failure(target, error, has_answer=False) from error
        if len(vectors) != len(inputs):
            raise embeddings_missing(target)
        return Embeddings(vectors, UsedTokens.from_provider(prompt_tokens, 0).prompt_tokens)

    async def transcribe(
        self, target: Target, audio: bytes, media_type: str, options: TranscriptionOptions
    ) -> Transcription:
        arguments = {**_audio_arguments(target), **options.fields()}
        library = await self._litellm()
        file = (f"audio.{EXTENSIONS[media_type]}", audio, media_type)
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                answer = await library.atranscription(**arguments, file=file)
            return Transcription(storable(str(answer.text)))
        except Exception as error:
            raise _failure(target, error, has_answer=False) from error

    async def speak(
        self, target: Target, text: str, voice: str | None, options: SpeechOptions
    ) -> bytes:
        arguments = {
            **_audio_arguments(target),
            **options.fields(),
            "voice": voice or _DEFAULT_VOICE,
        }
        library = await self._litellm()
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                answer = await library.aspeech(**arguments, input=text, response_format="mp3")
            content = bytes(answer.content)
        except Exception as error:
            raise _failure(target, error, has_answer=False) from error
        return check_mp3(target, content)

    async def find_unsupported(self, target: Target, names: set[str]) -> set[str]:
        """Returns those of the parameters that litellm would leave out for this model."""
        wanted = names - _ANNOTATIONS
        if not wanted:
            return set()
        library = await self._litellm()
        provider = LITELLM_PROVIDERS[target.provider]
        supported = library.get_supported_openai_params(
            model=target.name_at_provider, custom_llm_provider=provider.name
        )
        return wanted - (set(supported or ()) - provider.lacks)

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


def _check_end(target: Target, answer: Any, lines: WatchedLines | None) -> None:
    if lines is not None and lines.error is not None:
        message = mask_key(target, f"{target.model}: {lines.error.message}")
        raise refused_by_provider(target.model, lines.error.code, message)
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


def _finish_reason(answer: Any) -> str:
    return next((str(item.finish_reason) for item in answer.choices if item.finish_reason), "")


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
        return refused_by_provider(
            target.model,
            response.status_code,
            mask_key(target, f"{target.model}: {_provider_message(error, response)}"),
            parse_retry_after(response.headers.get("retry-after")),
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
