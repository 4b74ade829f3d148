"""The one door to models: finds the way to each, and asks again where nothing was lost by it."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from redis.asyncio import Redis

from app.domain.models import prices
from app.domain.models.errors import TRANSIENT, ModelFailed, ModelNotConfigured
from app.domain.models.litellm_adapter import LiteLLMAdapter
from app.domain.models.openai_adapter import OpenAIAdapter
from app.domain.models.protocol import Adapter, Ask, Embeddings, Piece, Target
from app.domain.models.providers import LOCAL, PROVIDERS
from app.kit import heartbeat, logs, metrics
from app.kit.egress import Egress, Guard
from app.kit.errors import Unavailable

log = logs.get("models")

LOCAL_MODEL = "local/smollm2"
LOCAL_WINDOW = 4096
_ABSENT_SECONDS = 0.5
RETRY_SECONDS = (0.5, 2.0)
_LONGEST_WAIT_SECONDS = 10.0
_ADDRESS_SECONDS = 5.0
_FORGET_SECONDS = 120.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,199}\Z")


class Models:
    """Opens no connection before the first question."""

    def __init__(self, guard: Guard, redis: Redis, *, has_local: bool) -> None:
        self._has_local = has_local
        # Many streams at once to one provider are the normal case here.
        self._wire = OpenAIAdapter(Egress(guard, limit=2000, per_host=1000))
        # The local model is the operator's own, at an address that no tenant chose.
        loopback = Guard(("127.0.0.0/8", "::1", "localhost"))
        self._local = OpenAIAdapter(Egress(loopback, limit=0, per_host=0))
        self._others = LiteLLMAdapter()
        self._redis = redis
        self._address: str | None = None
        self._address_at = -_ADDRESS_SECONDS
        self._heard_at = -_FORGET_SECONDS

    async def answer(self, target: Target, ask: Ask) -> AsyncGenerator[Piece, None]:
        """The pieces of one answer. Asks again only while nothing of it has been passed on."""
        provider = target.provider if target.provider in PROVIDERS else "other"
        adapter, target = await self._way_to(target)
        delays = iter(RETRY_SECONDS)
        passed_on = False
        while True:
            started, outcome = time.perf_counter(), "interrupted"
            try:
                async with aclosing(adapter.answer(target, ask)) as pieces:
                    async for piece in pieces:
                        passed_on = True
                        yield piece
            except ModelFailed as error:
                outcome = error.reason
                wait = None if passed_on else _patience(error, next(delays, None))
                if wait is None:
                    raise
            else:
                outcome = "answered"
                return
            finally:
                spent = time.perf_counter() - started
                metrics.MODEL_SECONDS.labels(provider, outcome).observe(spent)
            log.info("asking the model again", model=target.model, reason=outcome)
            await asyncio.sleep(wait)

    async def check(self, target: Target) -> None:
        """Refuse a model that cannot be asked, before anything is begun for it."""
        await self._way_to(target)

    def check_key(self, target: Target) -> None:
        """The same for work that can wait: only what will not pass by itself is refused."""
        if target.provider != LOCAL:
            self._remote(target)
        elif target.model != LOCAL_MODEL or not self._has_local:
            raise ModelNotConfigured(
                f"{target.model} is not served here; choose a model of GET /api/v1/models"
            )

    async def is_ready(self, target: Target) -> bool:
        try:
            await self._way_to(target)
        except (ModelNotConfigured, Unavailable):
            return False
        return True

    async def embed(self, target: Target, texts: list[str]) -> Embeddings:
        adapter, target = await self._way_to(target)
        return await adapter.embed(target, texts)

    async def listed(self, target: Target, seconds: float = 5.0) -> list[str]:
        """The models that an endpoint of OpenAI's kind lists itself."""
        if target.base_url is None:
            target = Target(
                target.model, target.provider, target.api_key, PROVIDERS[target.provider].base_url
            )
        listed = await self._wire.models(target, seconds)
        return [name for name in listed if _NAME.match(name) and ".." not in name]

    async def window_of(self, target: Target) -> int:
        return LOCAL_WINDOW if target.provider == LOCAL else await prices.window_of(target.model)

    async def close(self) -> None:
        for adapter in (self._wire, self._local, self._others):
            await adapter.close()

    async def _way_to(self, target: Target) -> tuple[Adapter, Target]:
        self.check_key(target)
        if target.provider != LOCAL:
            return self._remote(target)
        address = await self.local_address()
        if address is None:
            raise Unavailable(f"{target.model} is still starting; `parley up` runs it", 3)
        return self._local, Target(target.model, "", base_url=address)

    def _remote(self, target: Target) -> tuple[Adapter, Target]:
        if not _NAME.match(target.model) or ".." in target.model:
            raise ModelNotConfigured(f"{target.model[:100]!r} is not the name of a model")
        if not target.api_key:
            raise ModelNotConfigured(
                f"{target.model} needs a key of the provider {target.provider}; "
                "add one with POST /api/v1/api-keys"
            )
        if target.base_url is not None:
            return self._wire, target
        known = PROVIDERS.get(target.provider)
        if known is None:
            raise ModelNotConfigured(f"The provider {target.provider} needs a key with a base_url")
        if known.base_url is not None:
            return self._wire, Target(target.model, target.provider, target.api_key, known.base_url)
        return self._others, target

    async def local_address(self) -> str | None:
        """Where the local model says that it is; asked anew every few seconds."""
        if not self._has_local:
            return None
        now = time.monotonic()
        patience = _ADDRESS_SECONDS if self._address else _ABSENT_SECONDS
        if now - self._address_at >= patience:
            beats = [beat for beat in await heartbeat.read(self._redis) if beat.part == "model"]
            here = heartbeat.own_name().partition(":")[0]
            beats.sort(key=lambda beat: not beat.name.startswith(f"{here}:"))
            self._address_at = now
            if beats:
                self._address, self._heard_at = beats[0].address, now
            elif now - self._heard_at > _FORGET_SECONDS:
                # Until then it is Redis that forgot, rather than the model that left.
                self._address = None
        return self._address


def _patience(error: ModelFailed, delay: float | None) -> float | None:
    """How long to wait before asking again; None when that makes no sense."""
    if delay is None or error.reason not in TRANSIENT:
        return None
    wait = delay if error.retry_after is None else error.retry_after
    return wait if wait <= _LONGEST_WAIT_SECONDS else None
