from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from app.domain.sources import SourceView

from .schemas import TokenUsage

ResponseTime = Annotated[int, Meta(description="Milliseconds from the question to its end")]
FirstToken = Annotated[
    int | None,
    Meta(description="Milliseconds until the first text of the answer; null for one without text"),
]


class OfferedTool(msgspec.Struct):
    """`name` is the function's for the model, `tool` the tool's. A long description is cut."""

    name: str
    tool: str
    description: str


class ModelParameters(msgspec.Struct):
    temperature: float
    max_tokens: int


class TurnContext(msgspec.Struct):
    """What the model saw of a turn, and what the turn took. What is not known is null: all of a
    turn of an earlier release, texts while the agent logs no messages, tokens and cost while it
    logs none. The configuration of the agent is for callers with agents:write, the cost for those
    with usage:read, and the correlation id for those with events:read.
    """

    example: ClassVar[dict[str, Any]] = {
        "message_id": "msg_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "model": "local/smollm2",
        "provider": "local",
        "parameters": {"temperature": 0.2, "max_tokens": 512},
        "version": 3,
        "system_message": "You help in a shop.",
        "is_truncated": False,
        "passages": [SourceView.example],
        "tools": [
            {
                "name": "opening_hours",
                "tool": "Opening hours",
                "description": "When the shop is open",
            }
        ],
        "history_messages": 4,
        "usage": {"prompt_tokens": 42, "completion_tokens": 10, "total_tokens": 52},
        "cost_usd": 0.000012,
        "first_token_ms": 240,
        "response_time_ms": 812,
        "correlation_id": "cor_01k9x3m7e8c0v2q4r6t8w0y2a4",
    }

    message_id: str
    model: str | None = None
    provider: str | None = None
    parameters: ModelParameters | None = None
    version: Annotated[
        int | None, Meta(description="The agent's version with this prompt; null for a draft's")
    ] = None
    system_message: Annotated[
        str | None, Meta(description="The prompt, the context and the passages, as they were sent")
    ] = None
    is_truncated: Annotated[
        bool, Meta(description="Whether the context or the passages were longer than what is kept")
    ] = False
    passages: Annotated[
        list[SourceView] | None,
        Meta(description="All in the prompt, in the order of their numbers from 1 on"),
    ] = None
    tools: list[OfferedTool] | None = None
    history_messages: Annotated[
        int | None, Meta(description="Messages sent between the system message and the question")
    ] = None
    usage: TokenUsage | None = None
    cost_usd: float | None = None
    first_token_ms: FirstToken = None
    response_time_ms: int | None = None
    correlation_id: Annotated[
        str | None, Meta(description="The trace of the turn: its events, and what ran for how long")
    ] = None
