"""Requests to a model through an adapter or the gateway, and the parts of its answer."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Protocol

from app.domain.agents.llm.errors import TRANSIENT, ModelFailed, Reason
from app.domain.agents.llm.protocol import (
    Accepted,
    AnswerPart,
    Finished,
    Message,
    ModelRequest,
    Target,
    Text,
    ToolCall,
)
from tests.model_server import ModelServer

KEY = "sk-live-0123456789abcdef"
# Statuses of a provider, the reason of the failure that they become, and its own status and code.
STATUS_REASONS: list[tuple[int, Reason, tuple[int, str]]] = [
    (400, "refused", (400, "provider_rejected")),
    (401, "refused", (409, "model_not_configured")),
    (402, "refused", (400, "provider_rejected")),
    (403, "refused", (409, "model_not_configured")),
    (404, "refused", (400, "provider_rejected")),
    (422, "refused", (422, "provider_rejected")),
    (408, "timeout", (502, "provider_error")),
    (504, "timeout", (502, "provider_error")),
    (429, "rate_limited", (429, "rate_limited")),
    (500, "unavailable", (502, "provider_error")),
    (502, "unavailable", (502, "provider_error")),
    (503, "unavailable", (502, "provider_error")),
    (529, "unavailable", (502, "provider_error")),
]
# Values of `is_streamed`.
STREAMED_AND_WHOLE = (True, False)


class StepHold:
    """Lets the scripted model send one text for each `release`."""

    def __init__(self, steps: int = 0) -> None:
        self._steps = asyncio.Semaphore(steps)

    async def wait(self) -> None:
        await self._steps.acquire()

    def release(self) -> None:
        self._steps.release()


class AnswerSource(Protocol):
    def answer(self, target: Target, request: ModelRequest) -> AsyncGenerator[AnswerPart, None]: ...


def make_request(**fields: Any) -> ModelRequest:
    return ModelRequest(**{"messages": [Message("user", "Hello")], **fields})


STREAMED_REQUEST = make_request()


def scripted_target(models: ModelServer, model: str) -> Target:
    return Target(f"scripted/{model}", "scripted", KEY, models.url)


async def read_parts(
    source: AnswerSource, target: Target, request: ModelRequest = STREAMED_REQUEST
) -> list[AnswerPart]:
    """Returns the parts of an answer besides its beginning and its end."""
    async with aclosing(source.answer(target, request)) as parts:
        return [part async for part in parts if not isinstance(part, Accepted | Finished)]


async def read_end(
    source: AnswerSource, target: Target, request: ModelRequest = STREAMED_REQUEST
) -> Finished:
    """Returns why an answer ended."""
    async with aclosing(source.answer(target, request)) as parts:
        ends = [part async for part in parts if isinstance(part, Finished)]
    assert len(ends) == 1
    return ends[0]


async def read_failure(
    source: AnswerSource, target: Target, request: ModelRequest = STREAMED_REQUEST
) -> tuple[ModelFailed, list[AnswerPart]]:
    """Returns the failure of an answer and the parts before it."""
    before: list[AnswerPart] = []
    try:
        async with aclosing(source.answer(target, request)) as parts:
            async for part in parts:
                if not isinstance(part, Accepted):
                    before.append(part)  # noqa: PERF401  # a comprehension would lose them
    except ModelFailed as error:
        return error, before
    raise AssertionError(f"nothing failed: {before}")


def text_of(parts: list[AnswerPart]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


def calls_of(parts: list[AnswerPart]) -> list[ToolCall]:
    return [part for part in parts if isinstance(part, ToolCall)]


def check_refusal(
    error: ModelFailed, model: str, status: int, reason: Reason, ours: tuple[int, str]
) -> None:
    """Checks what the caller is told when the provider has answered with this status."""
    assert error.reason == reason
    assert (type(error).status, error.code) == ours
    details = {"model": model, "reason": reason, "provider_status": status}
    if reason in TRANSIENT:
        assert error.details == {**details, "retry_after": 5}
        assert error.headers == {"Retry-After": "5"}
    else:
        assert error.details == details
        assert error.headers == {"x-should-retry": "false"}
