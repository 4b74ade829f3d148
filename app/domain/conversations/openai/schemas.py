"""OpenAI's wire format."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from app.domain.conversations.chat.schemas import TokenUsage


class Part(msgspec.Struct):
    type: str
    text: str | None = None


class CompletionMessage(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None


class StreamOptions(msgspec.Struct):
    include_usage: bool = False


class CompletionRequest(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "model": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "messages": [{"role": "user", "content": "When does the shop open?"}],
    }

    model: Annotated[str, Meta(max_length=64, description="An agent's id")]
    messages: Annotated[list[CompletionMessage], Meta(min_length=1, max_length=1000)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    n: Annotated[int, Meta(ge=1, le=1, description="One answer at a time")] | None = None
    response_format: dict[str, Any] | None = None


class CompletionReply(msgspec.Struct):
    role: Literal["assistant"]
    content: str
    refusal: str | None = None


class Choice(msgspec.Struct):
    index: int
    message: CompletionReply
    finish_reason: Literal["stop"]
    logprobs: None = None


class Completion(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": "chatcmpl-msg_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "object": "chat.completion",
        "created": 1767268800,
        "model": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "The shop opens at 9.",
                    "refusal": None,
                },
                "finish_reason": "stop",
                "logprobs": None,
            }
        ],
        "usage": {"prompt_tokens": 42, "completion_tokens": 8, "total_tokens": 50},
        "conversation_id": "cnv_01k9x3m7e8c0v2q4r6t8w0y2a4",
    }

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: TokenUsage
    conversation_id: str


class ModelCard(msgspec.Struct):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelCards(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "object": "list",
        "data": [
            {
                "id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
                "object": "model",
                "created": 1767268800,
                "owned_by": "Shop assistant",
            }
        ],
    }

    object: Literal["list"]
    data: list[ModelCard]
