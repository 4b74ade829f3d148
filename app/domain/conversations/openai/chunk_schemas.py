"""OpenAI's wire format of a streamed completion."""

from typing import Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, UnsetType

from app.domain.conversations.chat.schemas import TokenUsage
from app.kit.error_mapping import OpenAIErrorBody

from .schemas import Completion, CompletionEnd, FunctionCall


class ChunkToolCall(msgspec.Struct):
    index: int
    id: str
    type: Literal["function"]
    function: FunctionCall


class ChunkDelta(msgspec.Struct):
    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType = UNSET
    refusal: str | UnsetType = UNSET
    tool_calls: list[ChunkToolCall] | UnsetType = UNSET
    function_call: FunctionCall | UnsetType = UNSET


class ChunkChoice(msgspec.Struct):
    index: int
    delta: ChunkDelta
    finish_reason: CompletionEnd | None
    logprobs: None = None


class CompletionChunk(msgspec.Struct):
    """The last chunk of the answer has `finish_reason`, and `conversation_id` unless nothing was
    stored. With
    `stream_options.include_usage`, one without choices follows, which has `usage`.
    """

    example: ClassVar[dict[str, Any]] = {
        "id": Completion.example["id"],
        "object": "chat.completion.chunk",
        "created": Completion.example["created"],
        "model": Completion.example["model"],
        "choices": [
            {
                "index": 0,
                "delta": {"content": "The shop opens"},
                "finish_reason": None,
                "logprobs": None,
            }
        ],
    }

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChunkChoice]
    conversation_id: str | UnsetType = UNSET
    usage: TokenUsage | UnsetType = UNSET


class StreamError(msgspec.Struct):
    """What went wrong after the stream had begun."""

    error: OpenAIErrorBody
