"""Requests to a model through an adapter or the gateway, and the parts of its answer."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Protocol

from app.domain.agents.llm.errors import ModelFailed
from app.domain.agents.llm.protocol import AnswerPart, Message, ModelRequest, Target, Text, ToolCall
from tests.model_server import ModelServer

KEY = "sk-live-0123456789abcdef"
# Statuses of a provider, and the reason of the failure that they become.
STATUS_REASONS = [
    (400, "refused"),
    (401, "refused"),
    (402, "refused"),
    (403, "refused"),
    (404, "refused"),
    (422, "refused"),
    (408, "timeout"),
    (504, "timeout"),
    (429, "rate_limited"),
    (500, "unavailable"),
    (502, "unavailable"),
    (503, "unavailable"),
    (529, "unavailable"),
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
    async with aclosing(source.answer(target, request)) as parts:
        return [part async for part in parts]


async def read_failure(
    source: AnswerSource, target: Target, request: ModelRequest = STREAMED_REQUEST
) -> tuple[ModelFailed, list[AnswerPart]]:
    """Returns the failure of an answer and the parts before it."""
    before: list[AnswerPart] = []
    try:
        async with aclosing(source.answer(target, request)) as parts:
            async for part in parts:
                before.append(part)  # noqa: PERF401  # a comprehension would lose them on failure
    except ModelFailed as error:
        return error, before
    raise AssertionError(f"nothing failed: {before}")


def text_of(parts: list[AnswerPart]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


def calls_of(parts: list[AnswerPart]) -> list[ToolCall]:
    return [part for part in parts if isinstance(part, ToolCall)]
