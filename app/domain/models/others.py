"""Every provider that does not speak OpenAI's wire format, through litellm.

litellm takes seconds and 165 MiB to import, so it is imported when the first of its models is
asked, in a thread. It is only ever told the key that the tenant gave, and only reaches the hosted
providers of our table: addresses and keys in the environment of this process are taken away first.
"""

import asyncio
import os
import re
from collections.abc import AsyncGenerator
from contextlib import suppress
from importlib import import_module
from typing import Any

from app.domain.models.protocol import (
    Ask,
    Embeddings,
    ModelFailed,
    Piece,
    Reason,
    Target,
    Text,
    Used,
)
from app.domain.models.wire import (
    IDLE_SECONDS,
    CallParts,
    asked,
    reason_of,
    seconds_of,
    without_key,
)

_REASONS: dict[str, Reason] = {
    "Timeout": "timeout",
    "RateLimitError": "rate_limited",
    "APIConnectionError": "unreachable",
    "ServiceUnavailableError": "unavailable",
    "InternalServerError": "unavailable",
    "BadGatewayError": "unavailable",
    "PermissionDeniedError": "refused",
    "AuthenticationError": "refused",
}
# Where litellm would send keys to, or which it would use, whatever a tenant gave.
_FROM_ENVIRONMENT = re.compile(r"(?!PARLEY_).*_(API_BASE|BASE_URL|API_URL|API_KEY|ENDPOINT)\Z")


class Others:
    def __init__(self) -> None:
        self._library: Any = None
        self._importing: asyncio.Task[Any] | None = None

    async def answer(self, target: Target, ask: Ask) -> AsyncGenerator[Piece, None]:
        library = await self._litellm()
        request = {**_common(target), **asked(ask)}
        request |= {"temperature": ask.temperature, "max_tokens": ask.max_tokens}
        calls: dict[int, CallParts] = {}
        answer: Any = None
        try:
            answer = await library.acompletion(**request)
            async for chunk in _chunks(answer, live=ask.live):
                for piece in _pieces(chunk, calls):
                    yield piece
        except Exception as error:
            raise _failure(target, error) from error
        finally:
            await _close(answer)
        if ask.live and not getattr(answer, "received_finish_reason", None):
            raise ModelFailed(target.model, "broken", f"{target.model} broke off its answer")
        for index, call in sorted(calls.items()):
            yield call.whole(index)

    async def embed(self, target: Target, texts: list[str]) -> Embeddings:
        library = await self._litellm()
        try:
            answer = await library.aembedding(**_common(target), input=texts)
            items = sorted(answer.data, key=lambda item: int(item["index"]))
            vectors = [list(map(float, item["embedding"])) for item in items]
            used = int(getattr(answer.usage, "prompt_tokens", 0) or 0)
        except Exception as error:
            raise _failure(target, error) from error
        if [int(item["index"]) for item in items] != list(range(len(texts))):
            raise ModelFailed(target.model, "broken", f"{target.model} left out embeddings")
        return Embeddings(vectors, Used.told(used, 0).prompt_tokens)

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
    for name in [name for name in os.environ if _FROM_ENVIRONMENT.match(name)]:
        del os.environ[name]
    # Otherwise the import asks the network for newer prices, and waits for it.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    library: Any = import_module("litellm")
    library.telemetry = False
    library.suppress_debug_info = True
    library.drop_params = True
    # Its other transport takes a connection that broke for an answer that ended.
    library.disable_aiohttp_transport = True
    return library


def _common(target: Target) -> dict[str, Any]:
    return {
        "model": f"{target.provider}/{target.name_at_provider}",
        "api_key": target.api_key,
        "timeout": IDLE_SECONDS,
        "num_retries": 0,
        "max_retries": 0,
    }


async def _chunks(answer: Any, *, live: bool) -> AsyncGenerator[Any, None]:
    if not live:
        yield answer
        return
    async for chunk in answer:
        yield chunk


async def _close(answer: Any) -> None:
    """The library leaves the connection of an unfinished stream open."""
    inner = getattr(answer, "completion_stream", None)
    for stream in (answer, inner, getattr(inner, "response", None)):
        close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
        if close is not None:
            with suppress(Exception):
                ended = close()
                if asyncio.iscoroutine(ended):
                    await ended


def _pieces(answer: Any, calls: dict[int, CallParts]) -> list[Piece]:
    pieces: list[Piece] = []
    for choice in list(answer.choices)[:1]:
        content = getattr(choice, "delta", None) or getattr(choice, "message", None)
        text = getattr(content, "content", None)
        if text:
            pieces.append(Text(str(text).replace("\0", "")))
        for position, delta in enumerate(getattr(content, "tool_calls", None) or ()):
            index = getattr(delta, "index", None)
            call = calls.setdefault(position if index is None else index, CallParts())
            call.id = delta.id or call.id
            call.name = delta.function.name or call.name
            call.arguments.append(delta.function.arguments or "")
    usage = getattr(answer, "usage", None)
    if usage is not None:
        counts = (int(usage.prompt_tokens or 0), int(usage.completion_tokens or 0))
        pieces.append(Used.told(*counts))
    return pieces


def _failure(target: Target, error: Exception) -> ModelFailed:
    """Litellm's exceptions carry the provider's message behind their own names."""
    # One that happens within a stream is wrapped in another.
    error = getattr(error, "original_exception", None) or error
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) else None
    reason = _REASONS.get(type(error).__name__)
    if reason is None:
        reason = "refused" if status is None else reason_of(status)
    words = str(getattr(error, "message", "") or error).split("\n")[0]
    message = words.removeprefix(f"litellm.{type(error).__name__}: ")
    headers = getattr(error, "litellm_response_headers", None) or {}
    return ModelFailed(
        target.model,
        reason,
        without_key(target, f"{target.model}: {message}"),
        status=status,
        retry_after=seconds_of(headers.get("retry-after")),
    )
