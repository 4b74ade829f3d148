"""OpenAI's wire format of chat completions and models."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from app.domain.conversations.chat.schemas import TokenUsage

MAX_FUNCTIONS = 128
_AGENT_ID = "agt_01k9x3m7e8c0v2q4r6t8w0y2a4"
_NAME = r"^[A-Za-z0-9_-]{1,64}$"

FunctionName = Annotated[str, Meta(pattern=_NAME)]
Metadata = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]],
    Meta(max_length=16),
]


class ImageUrl(msgspec.Struct):
    url: str
    detail: Literal["auto", "low", "high"] | None = None


class Part(msgspec.Struct):
    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: ImageUrl | None = None


class FunctionCall(msgspec.Struct):
    name: FunctionName
    arguments: str = ""


class MessageToolCall(msgspec.Struct):
    id: Annotated[str, Meta(min_length=1, max_length=256)]
    function: FunctionCall
    type: Literal["function"] = "function"


class CompletionMessage(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None
    tool_calls: Annotated[list[MessageToolCall], Meta(max_length=128)] | None = None
    tool_call_id: str | None = None
    name: Annotated[str, Meta(max_length=64)] | None = None
    refusal: str | None = None
    function_call: FunctionCall | None = None


class StreamOptions(msgspec.Struct):
    include_usage: bool = False


class FunctionDefinition(msgspec.Struct):
    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(msgspec.Struct):
    type: str
    function: FunctionDefinition | None = None


class CompletionRequest(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "model": _AGENT_ID,
        "messages": [{"role": "user", "content": "When does the shop open?"}],
    }

    model: Annotated[str, Meta(max_length=64, description="An agent's id")]
    messages: Annotated[list[CompletionMessage], Meta(min_length=1, max_length=1000)]
    conversation_id: Annotated[
        Annotated[str, Meta(max_length=64)] | None,
        Meta(
            description="Goes on with one of your conversations. Its history is used, so only the "
            "messages after the last one of the assistant are new"
        ),
    ] = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="More than the agent's own limit is reduced to it; the header "
            "X-Parley-Max-Tokens then has the limit"
        ),
    ] = None
    response_format: dict[str, Any] | None = None
    tools: Annotated[
        Annotated[list[Tool], Meta(max_length=MAX_FUNCTIONS)] | None,
        Meta(
            description="Functions that you run. A call of one ends the answer with "
            "`finish_reason: tool_calls`; send its result as a message with the role `tool`. The "
            "agent's own tools run here"
        ),
    ] = None
    tool_choice: Annotated[
        str | dict[str, Any] | None,
        Meta(description="none, auto, required, or the function that must be called"),
    ] = None
    parallel_tool_calls: bool | None = None
    functions: Annotated[
        Annotated[list[FunctionDefinition], Meta(max_length=MAX_FUNCTIONS)] | None,
        Meta(description="The older form of `tools`"),
    ] = None
    function_call: Annotated[
        str | dict[str, Any] | None, Meta(description="The older form of `tool_choice`")
    ] = None
    stop: str | Annotated[list[str], Meta(max_length=4)] | None = None
    seed: int | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    logit_bias: (
        Annotated[dict[str, Annotated[float, Meta(ge=-100, le=100)]], Meta(max_length=1000)] | None
    ) = None
    reasoning_effort: Annotated[str, Meta(max_length=16)] | None = None
    verbosity: Annotated[str, Meta(max_length=16)] | None = None
    user: Annotated[str, Meta(max_length=256)] | None = None
    metadata: Metadata | None = None
    store: Annotated[
        bool | None, Meta(description="With false, question and answer are not kept")
    ] = None
    service_tier: str | None = None
    n: Annotated[int, Meta(ge=1)] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    modalities: list[str] | None = None
    audio: dict[str, Any] | None = None
    prediction: dict[str, Any] | None = None
    web_search_options: dict[str, Any] | None = None


class CompletionReply(msgspec.Struct):
    role: Literal["assistant"]
    content: str | None
    refusal: str | None
    tool_calls: list[MessageToolCall] | msgspec.UnsetType = msgspec.UNSET
    function_call: FunctionCall | msgspec.UnsetType = msgspec.UNSET


CompletionEnd = Literal["stop", "length", "tool_calls", "content_filter", "function_call"]


class Choice(msgspec.Struct):
    index: int
    message: CompletionReply
    finish_reason: CompletionEnd
    logprobs: None = None


class Completion(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": "chatcmpl-msg_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "object": "chat.completion",
        "created": 1767268800,
        "model": _AGENT_ID,
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
    conversation_id: Annotated[
        str | None, Meta(description="The conversation that has question and answer, if stored")
    ]


class ModelCard(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": _AGENT_ID,
        "object": "model",
        "created": 1767268800,
        "owned_by": "tnt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Shop assistant",
    }

    id: str
    object: Literal["model"]
    created: int
    owned_by: Annotated[str, Meta(description="The tenant's id")]
    name: str


class ModelCards(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"object": "list", "data": [ModelCard.example]}

    object: Literal["list"]
    data: list[ModelCard]
