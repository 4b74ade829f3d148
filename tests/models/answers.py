"""Requests to a model through an adapter or the gateway, and the parts of its answer."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Protocol

import pytest

from app.domain.models.errors import ModelFailed
from app.domain.models.protocol import AnswerPart, Message, ModelRequest, Target, Text, ToolCall
from tests.model_server import ModelServer

KEY = "sk-live-0123456789abcdef"
STREAMED_AND_WHOLE = pytest.mark.parametrize("is_streamed", [True, False], ids=["stream", "whole"])


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
