"""Calls models in OpenAI's wire format over pooled connections."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from app.net.egress import BlockedAddress, Egress, EgressError, EgressTimeout
from app.net.retry_after import parse_retry_after

from .errors import ModelFailed, Reason, refused_by_provider
from .openai_audio import encode_transcription, read_transcription, speech_body
from .openai_completions import CompletionParser, Usage, decode
from .openai_requests import completion_body
from .openai_responses import MAX_BYTES, read_body, read_events
from .protocol import (
    Accepted,
    AnswerPart,
    EmbeddingInputs,
    Embeddings,
    ModelRequest,
    SpeechOptions,
    Target,
    Transcription,
    TranscriptionOptions,
    UsedTokens,
)
from .provider_failures import (
    answer_incomplete,
    check_mp3,
    embeddings_missing,
    error_message,
)

TOTAL_SECONDS = 600.0
IDLE_SECONDS = 120.0
_MAX_ANSWER_BYTES = 8 * 1024 * 1024
_MAX_LIST_BYTES = 1024 * 1024
_MAX_LISTED_MODELS = 1000
_OK = 200
_JSON = "application/json"


class _Embedding(msgspec.Struct):
    index: int
    embedding: list[float]


class _EmbeddingList(msgspec.Struct):
    data: list[_Embedding]
    usage: Usage = msgspec.field(default_factory=Usage)


class _Model(msgspec.Struct):
    id: str


class _ModelList(msgspec.Struct):
    data: list[_Model]


_embeddings_decoder = msgspec.json.Decoder(_EmbeddingList)
_models_decoder = msgspec.json.Decoder(_ModelList)


class OpenAIAdapter:
    def __init__(self, egress: Egress) -> None:
        self._egress = egress

    async def answer(
        self, target: Target, request: ModelRequest
    ) -> AsyncGenerator[AnswerPart, None]:
        body = msgspec.json.encode(completion_body(target, request))
        parser = CompletionParser(target)
        is_streamed = request.is_streamed
        seconds = min(request.seconds or TOTAL_SECONDS, TOTAL_SECONDS)
        opening = self._open(
            target, "POST", "/chat/completions", body, seconds, is_streamed=is_streamed
        )
        async with opening as response:
            # With its headers: some models think for minutes before they send an event.
            yield Accepted()
            if not is_streamed or "event-stream" not in response.headers.get("Content-Type", ""):
                for part in parser.parse(await read_body(target, response, _MAX_ANSWER_BYTES)):
                    yield part
            else:
                async for events in read_events(target, response):
                    parts, failure = parser.parse_packet(events)
                    for part in parts:
                        yield part
                    if failure is not None:
                        raise failure
        if not parser.is_finished:
            raise answer_incomplete(target)
        for call in parser.tool_calls():
            yield call
        yield parser.finished()

    async def embed(
        self, target: Target, inputs: EmbeddingInputs, dimensions: int | None = None
    ) -> Embeddings:
        fields: dict[str, Any] = {"model": target.name_at_provider, "input": inputs}
        if dimensions is not None:
            fields["dimensions"] = dimensions
        raw = await self.post(target, "/embeddings", fields, TOTAL_SECONDS)
        answer = decode(_embeddings_decoder, target, raw)
        ordered = sorted(answer.data, key=lambda item: item.index)
        if [item.index for item in ordered] != list(range(len(inputs))):
            raise embeddings_missing(target)
        used = UsedTokens.from_provider(answer.usage.prompt_tokens, 0)
        return Embeddings([item.embedding for item in ordered], used.prompt_tokens)

    async def transcribe(
        self, target: Target, audio: bytes, media_type: str, options: TranscriptionOptions
    ) -> Transcription:
        body, content_type = encode_transcription(target, audio, media_type, options)
        opening = self._open(
            target,
            "POST",
            "/audio/transcriptions",
            body,
            TOTAL_SECONDS,
            content_type=content_type,
        )
        async with opening as response:
            raw = await read_body(target, response, _MAX_ANSWER_BYTES)
        return read_transcription(target, raw)

    async def speak(
        self, target: Target, text: str, voice: str | None, options: SpeechOptions
    ) -> bytes:
        """Returns the text as speech, an MP3 file."""
        fields = speech_body(target, text, voice, options)
        return check_mp3(target, await self.post(target, "/audio/speech", fields, TOTAL_SECONDS))

    async def post(
        self,
        target: Target,
        path: str,
        fields: dict[str, Any],
        seconds: float,
        max_bytes: int = MAX_BYTES,
    ) -> bytes:
        """Posts the fields as JSON, and returns the body of the answer. Raises ModelFailed."""
        body = msgspec.json.encode(fields)
        async with self._open(target, "POST", path, body, seconds) as response:
            return await read_body(target, response, max_bytes)

    async def list_models(self, target: Target, seconds: float) -> list[str]:
        """Returns the model names that the endpoint itself lists."""
        async with self._open(target, "GET", "/models", None, seconds) as response:
            raw = await read_body(target, response, _MAX_LIST_BYTES)
            models = decode(_models_decoder, target, raw)
        return [model.id for model in models.data[:_MAX_LISTED_MODELS]]

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
        is_streamed: bool = False,
        content_type: str = _JSON,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {"Content-Type": content_type}
        if target.api_key:
            headers["Authorization"] = f"Bearer {target.api_key}"
        has_response = False
        try:
            async with self._egress.open(
                method,
                f"{(target.base_url or '').rstrip('/')}{path}",
                headers=headers,
                body=body,
                timeout_seconds=seconds,
                # A whole answer arrives at once, after any time within the total.
                idle_seconds=IDLE_SECONDS if is_streamed else None,
            ) as response:
                has_response = True
                if response.status != _OK:
                    raise _refusal(target, response, await read_body(target, response))
                yield response
        except EgressTimeout as error:
            raise ModelFailed(target.model, "timeout", f"{target.model}: {error}") from error
        except BlockedAddress as error:
            raise ModelFailed(target.model, "refused", f"{target.model}: {error}") from error
        except EgressError as error:
            reason: Reason = "broken" if has_response else "unreachable"
            raise ModelFailed(target.model, reason, f"{target.model}: {error}") from error


def _refusal(target: Target, response: aiohttp.ClientResponse, raw: bytes) -> ModelFailed:
    try:
        body = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = None
    return refused_by_provider(
        target.model,
        response.status,
        error_message(target, body, f"the provider answered {response.status}"),
        parse_retry_after(response.headers.get("Retry-After")),
    )
