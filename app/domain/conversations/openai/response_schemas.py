"""OpenAI's wire format of responses."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from .schemas import MAX_FUNCTIONS, FunctionName, Metadata

_AGENT_ID = "agt_01k9x3m7e8c0v2q4r6t8w0y2a4"
_RESPONSE_ID = "resp_01k9x3m7e8c0v2q4r6t8w0y2a4"
_ItemId = Annotated[str, Meta(min_length=1, max_length=256)]
_Id = Annotated[str, Meta(max_length=64)]


class InputPart(msgspec.Struct):
    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: str | None = None
    detail: Literal["auto", "low", "high"] | None = None


class InputItem(msgspec.Struct):
    """A message, a call of a function, its output, or a reference to an item of an earlier
    response.
    """

    type: str = "message"
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: str | list[InputPart] | None = None
    id: _ItemId | None = None
    call_id: _ItemId | None = None
    name: FunctionName | None = None
    arguments: str | None = None
    output: str | list[InputPart] | None = None


class ResponseTool(msgspec.Struct):
    type: str
    name: FunctionName | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class TextOptions(msgspec.Struct):
    format: dict[str, Any] | None = None
    verbosity: Annotated[str, Meta(max_length=16)] | None = None


class ReasoningOptions(msgspec.Struct):
    effort: Annotated[str, Meta(max_length=16)] | None = None
    summary: str | None = None
    generate_summary: str | None = None


class ResponseConversation(msgspec.Struct):
    id: _Id


class ResponseRequest(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"model": _AGENT_ID, "input": "When does the shop open?"}

    model: Annotated[_Id, Meta(description="An agent's id")]
    input: str | Annotated[list[InputItem], Meta(min_length=1, max_length=1000)]
    instructions: Annotated[
        str | None, Meta(description="For this response alone, after the agent's own prompt")
    ] = None
    previous_response_id: Annotated[
        _Id | None,
        Meta(
            description="Goes on after the last answer of a conversation, whose history is kept "
            "here; send new items only"
        ),
    ] = None
    conversation: Annotated[
        _Id | ResponseConversation | None,
        Meta(description="Goes on with one of your conversations"),
    ] = None
    stream: bool | None = None
    background: Annotated[
        bool | None,
        Meta(description="Answers with the status `queued`; get the response until it ends"),
    ] = None
    store: Annotated[
        bool | None, Meta(description="With false, question and answer are not kept")
    ] = None
    max_output_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="More than the agent's own limit is reduced to it; the response and the "
            "header X-Parley-Max-Tokens have the limit"
        ),
    ] = None
    tools: Annotated[
        Annotated[list[ResponseTool], Meta(max_length=MAX_FUNCTIONS)] | None,
        Meta(
            description="Functions that you run. The response ends with their calls; send their "
            "outputs as `function_call_output`. The agent's own tools run here"
        ),
    ] = None
    tool_choice: Annotated[
        str | dict[str, Any] | None,
        Meta(description="none, auto, required, or the function that must be called"),
    ] = None
    parallel_tool_calls: bool | None = None
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    user: Annotated[str, Meta(max_length=256)] | None = None
    metadata: Metadata | None = None
    include: Annotated[list[str], Meta(max_length=32)] | None = None
    truncation: str | None = None
    service_tier: str | None = None
    top_logprobs: int | None = None
    max_tool_calls: int | None = None
    prompt: dict[str, Any] | None = None
    context_management: list[Any] | None = None


class OutputText(msgspec.Struct, tag_field="type", tag="output_text"):
    text: str
    annotations: list[Any] = []
    logprobs: list[Any] = []


class OutputRefusal(msgspec.Struct, tag_field="type", tag="refusal"):
    """Why the model does not answer."""

    refusal: str


ItemStatus = Literal["in_progress", "completed", "incomplete"]


class OutputMessage(msgspec.Struct, tag_field="type", tag="message"):
    id: str
    status: ItemStatus
    content: list[OutputText | OutputRefusal]
    role: Literal["assistant"] = "assistant"


class OutputCall(msgspec.Struct, tag_field="type", tag="function_call"):
    id: str
    call_id: str
    name: str
    arguments: str
    status: ItemStatus = "completed"


OutputItem = OutputMessage | OutputCall


class ResponseError(msgspec.Struct):
    code: str
    message: str


class IncompleteDetails(msgspec.Struct):
    reason: Literal["max_output_tokens", "content_filter"]


class CachedTokens(msgspec.Struct):
    cached_tokens: int = 0


class ReasoningTokens(msgspec.Struct):
    reasoning_tokens: int = 0


class ResponseUsage(msgspec.Struct):
    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: CachedTokens = msgspec.field(default_factory=CachedTokens)
    output_tokens_details: ReasoningTokens = msgspec.field(default_factory=ReasoningTokens)


class ResponseSettings(msgspec.Struct, kw_only=True):
    """What the client asked for."""

    background: bool = False
    instructions: str | None = None
    max_output_tokens: int | None = None
    metadata: dict[str, str] = {}
    parallel_tool_calls: bool = True
    previous_response_id: str | None = None
    reasoning: ReasoningOptions = msgspec.field(default_factory=ReasoningOptions)
    store: bool = True
    temperature: float | None = None
    text: dict[str, Any] = msgspec.field(default_factory=lambda: {"format": {"type": "text"}})
    tool_choice: str | dict[str, Any] = "auto"
    tools: list[dict[str, Any]] = []
    top_p: float | None = None
    truncation: str = "auto"
    user: str | None = None


ResponseStatus = Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]


class ResponseObject(ResponseSettings, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "id": _RESPONSE_ID,
        "object": "response",
        "created_at": 1767268800,
        "status": "completed",
        "model": _AGENT_ID,
        "output": [
            {
                "type": "message",
                "id": "msg_01k9x3m7e8c0v2q4r6t8w0y2a4",
                "status": "completed",
                "role": "assistant",
                "content": [
                    {
                        "type": "output_text",
                        "text": "At 9 in the morning.",
                        "annotations": [],
                        "logprobs": [],
                    }
                ],
            }
        ],
        "usage": {
            "input_tokens": 42,
            "output_tokens": 10,
            "total_tokens": 52,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
        "conversation": {"id": "cnv_01k9x3m7e8c0v2q4r6t8w0y2a4"},
    }

    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: ResponseStatus
    model: Annotated[str, Meta(description="The agent's id")]
    output: list[OutputItem]
    usage: ResponseUsage | None = None
    error: ResponseError | None = None
    incomplete_details: IncompleteDetails | None = None
    conversation: ResponseConversation | None = None


class DeletedResponse(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": _RESPONSE_ID,
        "object": "response",
        "deleted": True,
    }

    id: str
    object: Literal["response"] = "response"
    deleted: bool = True
