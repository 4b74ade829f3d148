"""Sends requests to models: selects the adapter, and retries while no part was passed on."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from typing import Final

import msgspec
from redis.asyncio import Redis

from app.jobs import background
from app.kit import logs
from app.kit.errors import Invalid, Unavailable
from app.net.egress import Egress, Guard
from app.observe import heartbeat, metrics
from app.observe.heartbeat import Beat
from db.connection_use import check_wait

from . import prices
from .errors import TRANSIENT, ModelFailed, ModelNotConfigured
from .litellm_adapter import LITELLM_PROVIDERS, UNSUPPORTED, LiteLLMAdapter
from .local_queue import LocalQueue
from .local_texts import TextFilter
from .openai_adapter import OpenAIAdapter
from .openai_requests import takes_temperature
from .protocol import (
    Accepted,
    Adapter,
    AnswerPart,
    EmbeddingInputs,
    Embeddings,
    ModelRequest,
    Ranking,
    RerankRequest,
    SpeechOptions,
    Target,
    Text,
    Transcription,
    TranscriptionOptions,
    Waiting,
)
from .providers import LOCAL, PROVIDERS
from .rerankers import Rerankers, find_api

log = logs.get("models")

LOCAL_MODEL = "local/smollm2"
LOCAL_WINDOW = 4096
# The longest answer of the local model unless somebody chooses another length.
LOCAL_ANSWER_TOKENS = 512
LOCAL_TEMPERATURE = 0.2
# The time for an answer of that length, on a machine as slow as one can be used; longer answers get
# more.
LOCAL_SECONDS = 120.0
# A stream that has no text yet says after these seconds that the model is at work.
_PROGRESS_SECONDS = 2.0
RETRY_SECONDS = (0.5, 2.0)
_MAX_RETRY_SECONDS = 10.0
# How long the local model's address is cached; shorter while there is none.
_ADDRESS_SECONDS = 5.0
_NO_ADDRESS_SECONDS = 0.5
# How long an address stays valid without a heartbeat.
_EXPIRY_SECONDS = 120.0
# What the server of the local model ignores. The model's prompts have no place for functions.
_LOCAL_LACKS: Final = frozenset({"reasoning_effort", "tool_choice", "tools", "verbosity"})
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,199}\Z")


class Models:
    """The gateway to all models. Opens no connection before the first request."""

    def __init__(self, guard: Guard, redis: Redis, *, has_local: bool) -> None:
        self._has_local = has_local
        # Many concurrent streams to one provider are the normal case.
        self._openai = OpenAIAdapter(Egress(guard, limit=2000, per_host=1000))
        # The operator runs the local model, so no tenant chooses its address.
        self._loopback = Guard(("127.0.0.0/8", "::1", "localhost"))
        self._local = OpenAIAdapter(Egress(self._loopback, limit=0, per_host=0))
        self._litellm = LiteLLMAdapter()
        self._rerankers = Rerankers(self._openai)
        self._redis = redis
        self._queue = LocalQueue(redis)
        # The heartbeat of the local model.
        self._server: Beat | None = None
        self._address_read_at = -_ADDRESS_SECONDS
        self._address_reader: asyncio.Task[None] | None = None
        self._last_beat_at = -_EXPIRY_SECONDS

    def answer(self, target: Target, request: ModelRequest) -> AsyncGenerator[AnswerPart, None]:
        """Yields the parts of one answer."""
        if target.provider == LOCAL:
            return self._answer_locally(target, request)
        return self._answer(target, request)

    async def _answer_locally(
        self, target: Target, request: ModelRequest
    ) -> AsyncGenerator[AnswerPart, None]:
        """Waits in the queue of the local model first; yields the position there. Raises ModelBusy
        when it takes too long.
        """
        await self.check(target)
        tokens = min(request.max_tokens, LOCAL_WINDOW)
        seconds = LOCAL_SECONDS * max(1.0, tokens / LOCAL_ANSWER_TOKENS)
        request = msgspec.structs.replace(request, max_tokens=tokens, seconds=seconds)
        ticket = None
        if self._server is not None and self._server.slots:
            ticket = self._queue.create_ticket(self._server, request.tenant_id, request.queue)
        try:
            if ticket is not None:
                async with aclosing(ticket.wait()) as positions:
                    async for position in positions:
                        yield position
            # Always as a stream, which can be ended when the answer repeats itself.
            answer = self._answer(target, msgspec.structs.replace(request, is_streamed=True))
            if request.response_format is None:
                answer = _without_noise(answer)
            if request.is_streamed:
                answer = _with_progress(answer)
            async with aclosing(answer) as parts:
                async for part in parts:
                    yield part
        finally:
            if ticket is not None:
                ticket.leave()

    async def _answer(
        self, target: Target, request: ModelRequest
    ) -> AsyncGenerator[AnswerPart, None]:
        """Retries only while no part was passed on."""
        provider = target.provider if target.provider in {LOCAL, *PROVIDERS} else "other"
        adapter, target = await self._resolve(target)
        delays = iter(RETRY_SECONDS if request.may_retry else ())
        has_parts = is_accepted = False
        while True:
            started, outcome = time.perf_counter(), "interrupted"
            try:
                async with aclosing(adapter.answer(target, request)) as parts:
                    async for part in parts:
                        if not isinstance(part, Accepted):
                            has_parts = True
                        elif is_accepted:
                            continue
                        is_accepted = True
                        yield part
            except ModelFailed as error:
                outcome = error.reason
                delay = None if has_parts else _retry_delay(error, next(delays, None))
                if delay is None:
                    raise
            else:
                outcome = "answered"
                return
            finally:
                seconds = time.perf_counter() - started
                metrics.MODEL_SECONDS.labels(provider, outcome).observe(seconds)
            log.info("retrying the model", model=target.model, reason=outcome)
            await asyncio.sleep(delay)

    async def check(self, target: Target) -> None:
        """Raises when the model cannot be used now."""
        await self._resolve(target)

    def check_key(self, target: Target) -> None:
        """Raises when the model cannot be used until its configuration changes. A local model that
        is still starting is accepted.
        """
        if target.provider != LOCAL:
            self._resolve_remote(target)
        elif target.model != LOCAL_MODEL or not self._has_local:
            raise ModelNotConfigured(
                f"This instance has no model {target.model}; GET /api/v1/models lists its models"
            )

    async def check_images(self, target: Target) -> None:
        """Raises Invalid for a model that takes no images."""
        if not await prices.takes_images(target.model):
            raise Invalid.field(
                "image_url",
                f"{target.model} takes no images; GET /api/v1/models lists the models that do",
            )

    async def check_request(self, target: Target, names: set[str]) -> None:
        """Raises Invalid for fields of a chat request that the model lacks."""
        missing: set[str] = set()
        if target.provider == LOCAL:
            missing = names & _LOCAL_LACKS
        elif target.base_url is None and target.provider in LITELLM_PROVIDERS:
            missing = await self._litellm.find_unsupported(target, names)
        elif not takes_temperature(target):
            missing = names & {"temperature"}
        _refuse_parameters(target, missing)

    def check_parameters(self, target: Target, names: Collection[str]) -> None:
        """Raises Invalid for parameters of embeddings or speech that the provider lacks, and
        ModelNotConfigured without a key.
        """
        adapter, _ = self._resolve_remote(target)
        if adapter is self._litellm:
            _refuse_parameters(target, UNSUPPORTED.intersection(names))

    def takes_tokens(self, target: Target) -> bool:
        """Whether an embedding model takes texts as the numbers of their tokens."""
        return self._resolve_remote(target)[0] is not self._litellm

    async def is_ready(self, target: Target) -> bool:
        try:
            await self._resolve(target)
        except (ModelNotConfigured, Unavailable):
            return False
        return True

    async def embed(
        self, target: Target, inputs: EmbeddingInputs, dimensions: int | None = None
    ) -> Embeddings:
        adapter, target = await self._resolve(target)
        return await adapter.embed(target, inputs, dimensions)

    async def rerank(self, target: Target, request: RerankRequest) -> Ranking:
        """Rates passages by how well they answer a question. Raises ModelFailed, also when it takes
        longer than `request.seconds`, and ModelNotConfigured.
        """
        check_wait("a model")
        find_api(target)
        self._resolve_remote(target)
        return await self._rerankers.rank(target, request)

    async def transcribe(
        self, target: Target, audio: bytes, media_type: str, options: TranscriptionOptions
    ) -> Transcription:
        adapter, target = await self._resolve(target)
        return await adapter.transcribe(target, audio, media_type, options)

    async def speak(
        self, target: Target, text: str, voice: str | None, options: SpeechOptions
    ) -> bytes:
        """Returns the text as speech, an MP3 file."""
        adapter, target = await self._resolve(target)
        return await adapter.speak(target, text, voice, options)

    async def list_models(self, target: Target, seconds: float = 5.0) -> list[str]:
        """Returns the models that an OpenAI-compatible endpoint lists itself."""
        if target.base_url is None:
            target = Target(
                target.model, target.provider, target.api_key, PROVIDERS[target.provider].base_url
            )
        names = await self._openai.list_models(target, seconds)
        return [name for name in names if _is_model_name(name)]

    async def window_of(self, target: Target) -> int:
        return LOCAL_WINDOW if target.provider == LOCAL else await prices.window_of(target.model)

    async def close(self) -> None:
        for adapter in (self._openai, self._local, self._litellm):
            await adapter.close()
        await self._loopback.close()

    async def _resolve(self, target: Target) -> tuple[Adapter, Target]:
        """Returns the adapter for the model, and the target with the provider's address."""
        check_wait("a model")
        self.check_key(target)
        if target.provider != LOCAL:
            return self._resolve_remote(target)
        address = await self.local_address()
        if address is None:
            raise Unavailable(f"{target.model} is still starting; `parley up` runs it", 3)
        return self._local, Target(target.model, "", base_url=address)

    def _resolve_remote(self, target: Target) -> tuple[Adapter, Target]:
        if not _is_model_name(target.model):
            raise ModelNotConfigured(f"{target.model[:100]!r} is not the name of a model")
        if not target.api_key:
            raise ModelNotConfigured(
                f"{target.model} needs a key of the provider {target.provider}; "
                "add one with POST /api/v1/api-keys"
            )
        if target.base_url is not None:
            return self._openai, target
        provider = PROVIDERS.get(target.provider)
        if provider is None:
            raise ModelNotConfigured(f"The provider {target.provider} needs a key with a base_url")
        if provider.base_url is not None:
            key, url = target.api_key, provider.base_url
            return self._openai, Target(target.model, target.provider, key, url)
        return self._litellm, target

    async def local_address(self) -> str | None:
        """Returns the address in the local model's heartbeat; reads it again every few seconds.
        Concurrent callers share one read.
        """
        if not self._has_local:
            return None
        cache_seconds = _ADDRESS_SECONDS if self._server else _NO_ADDRESS_SECONDS
        if time.monotonic() - self._address_read_at >= cache_seconds:
            if self._address_reader is None or self._address_reader.done():
                self._address_reader = background.spawn(self._read_address())
            await asyncio.shield(self._address_reader)
        return None if self._server is None else self._server.address

    async def _read_address(self) -> None:
        beats = [beat for beat in await heartbeat.read(self._redis) if beat.part == "model"]
        host = heartbeat.own_name().partition(":")[0]
        beats.sort(key=lambda beat: not beat.name.startswith(f"{host}:"))
        self._address_read_at = now = time.monotonic()
        if beats:
            self._server, self._last_beat_at = beats[0], now
        elif now - self._last_beat_at > _EXPIRY_SECONDS:
            # A shorter gap means that Redis lost the heartbeat, not that the model stopped.
            self._server = None


async def _with_progress(
    answer: AsyncGenerator[AnswerPart, None],
) -> AsyncGenerator[AnswerPart, None]:
    """Until the first part of the answer, yields now and then for how long the model has worked:
    reading a long prompt takes it a while.
    """
    started = time.monotonic()
    async with aclosing(answer):
        part: AnswerPart | None = Accepted()
        while isinstance(part, Accepted):
            next_part = asyncio.ensure_future(anext(answer, None))
            try:
                while not (await asyncio.wait([next_part], timeout=_PROGRESS_SECONDS))[0]:
                    yield Waiting(round(time.monotonic() - started))
                part = next_part.result()
            finally:
                next_part.cancel()
                await asyncio.wait([next_part])
            if part is not None:
                yield part
        async for part in answer:
            yield part


async def _without_noise(
    answer: AsyncGenerator[AnswerPart, None],
) -> AsyncGenerator[AnswerPart, None]:
    """Leaves out what a small model should not say, and ends an answer that repeats itself."""
    texts = TextFilter()
    async with aclosing(answer):
        async for part in answer:
            if not isinstance(part, Text):
                yield part
            elif passed := texts.add(part.text):
                yield Text(passed)
            if texts.is_over:
                return
    if rest := texts.finish():
        yield Text(rest)


def _refuse_parameters(target: Target, names: Collection[str]) -> None:
    Invalid.check(
        (name, f"{target.model} has no such parameter; leave it out") for name in sorted(names)
    )


def _is_model_name(name: str) -> bool:
    return bool(_MODEL_NAME.match(name)) and ".." not in name


def _retry_delay(error: ModelFailed, default: float | None) -> float | None:
    """Returns the seconds to wait before a retry; None when the request is not retried."""
    if default is None or error.reason not in TRANSIENT:
        return None
    delay = default if error.retry_after is None else error.retry_after
    return delay if delay <= _MAX_RETRY_SECONDS else None
