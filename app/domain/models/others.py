"""Every provider that does not speak OpenAI's wire format, through litellm.

litellm takes seconds and 165 MiB to import, so it is imported when the first of its models is
asked, in a thread. It is only ever told the key that the tenant gave, and only reaches the hosted
providers of our table: it looks up nothing in the environment of this process.
"""

import asyncio
import os
from collections.abc import AsyncGenerator
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
    ToolCall,
    Used,
)
from app.domain.models.wire import IDLE_SECONDS, asked, without_key

_REASONS: dict[str, Reason] = {
    "Timeout": "timeout",
    "RateLimitError": "rate_limited",
    "APIConnectionError": "unreachable",
    "ServiceUnavailableError": "unavailable",
    "InternalServerError": "unavailable",
    "BadGatewayError": "unavailable",
}


class Others:
    def __init__(self) -> None:
        self._library: Any = None
        self._importing: asyncio.Task[Any] | None = None

    async def answer(self, target: Target, ask: Ask) -> AsyncGenerator[Piece, None]:
        library = await self._litellm()
        request = {**self._common(target), **asked(ask)}
        request |= {"temperature": ask.temperature, "max_tokens": ask.max_tokens}
        calls: dict[int, list[str]] = {}
        try:
            answer = await library.acompletion(**request)
            if ask.live:
                async for chunk in answer:
                    for piece in _pieces(chunk, calls):
                        yield piece
            else:
                for piece in _pieces(answer, calls):
                    yield piece
        except ModelFailed:
            raise
        except Exception as error:
            raise _failure(target, error) from error
        for index, (call_id, name, arguments) in sorted(calls.items()):
            yield ToolCall(call_id or f"call_{index}", name, arguments)

    async def embed(self, target: Target, texts: list[str]) -> Embeddings:
        library = await self._litellm()
        try:
            answer = await library.aembedding(**self._common(target), input=texts)
            vectors = [list(map(float, item["embedding"])) for item in answer.data]
            return Embeddings(vectors, int(getattr(answer.usage, "prompt_tokens", 0) or 0))
        except Exception as error:
            raise _failure(target, error) from error

    async def close(self) -> None:
        if self._importing is not None:
            self._importing.cancel()

    def _common(self, target: Target) -> dict[str, Any]:
        return {
            "model": f"{target.provider}/{target.name_at_provider}",
            "api_key": target.api_key,
            "timeout": IDLE_SECONDS,
            "num_retries": 0,
            "max_retries": 0,
        }

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
    library.drop_params = True
    # Some providers want tools to be named again wherever the history has calls.
    library.modify_params = True
    return library


def _pieces(answer: Any, calls: dict[int, list[str]]) -> list[Piece]:
    pieces: list[Piece] = []
    for choice in list(answer.choices)[:1]:
        content = getattr(choice, "delta", None) or getattr(choice, "message", None)
        text = getattr(content, "content", None)
        if text:
            pieces.append(Text(str(text).replace("\0", "")))
        for position, delta in enumerate(getattr(content, "tool_calls", None) or ()):
            index = getattr(delta, "index", None)
            call = calls.setdefault(position if index is None else index, ["", "", ""])
            call[0] = delta.id or call[0]
            call[1] = delta.function.name or call[1]
            call[2] += (delta.function.arguments or "").replace("\0", "")
    usage = getattr(answer, "usage", None)
    if usage is not None:
        counts = (int(usage.prompt_tokens or 0), int(usage.completion_tokens or 0))
        pieces.append(Used.told(*counts))
    return pieces


def _failure(target: Target, error: Exception) -> ModelFailed:
    """Litellm's exceptions carry the provider's message behind their own names."""
    reason = _REASONS.get(type(error).__name__, "refused")
    words = str(getattr(error, "message", "") or error).split("\n")[0]
    message = words.removeprefix(f"litellm.{type(error).__name__}: ")
    status = getattr(error, "status_code", None)
    return ModelFailed(
        target.model,
        reason,
        without_key(target, f"{target.model}: {message}"),
        status=status if isinstance(status, int) else None,
    )
