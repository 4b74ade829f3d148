"""The events of a streamed response, in OpenAI's wire format."""

from typing import Any, ClassVar, Final

import msgspec

from .response_schemas import OutputItem, OutputRefusal, OutputText, ResponseObject

_STARTED = {**ResponseObject.example, "status": "in_progress", "output": []}
_MESSAGE: dict[str, Any] = ResponseObject.example["output"][0]
_PART = _MESSAGE["content"][0]
_CALL = {
    "type": "function_call",
    "id": "fc_01k9x3m7e8c0v2q4r6t8w0y2a4_0",
    "call_id": "call_01k9x3m7e8c0v2q4r6t8w0y2a4_0",
    "name": "clock",
    "arguments": "",
    "status": "in_progress",
}
_PLACE = {"item_id": _MESSAGE["id"], "output_index": 0, "content_index": 0}
_CALL_PLACE = {"item_id": _CALL["id"], "output_index": 1}
_REFUSAL = "I cannot help with that."
_ARGUMENTS = '{"zone": "UTC"}'


class ResponseEvent(msgspec.Struct, kw_only=True, tag_field="type"):
    sequence_number: int


class _OfResponse(ResponseEvent, kw_only=True):
    response: ResponseObject


def _example(event: str, number: int, **fields: Any) -> dict[str, Any]:
    return {"type": event, "sequence_number": number, **fields}


class ResponseCreated(_OfResponse, tag="response.created"):
    example: ClassVar[dict[str, Any]] = _example("response.created", 0, response=_STARTED)


class ResponseInProgress(_OfResponse, tag="response.in_progress"):
    example: ClassVar[dict[str, Any]] = _example("response.in_progress", 1, response=_STARTED)


class ResponseCompleted(_OfResponse, tag="response.completed"):
    example: ClassVar[dict[str, Any]] = _example(
        "response.completed", 12, response=ResponseObject.example
    )


class ResponseIncomplete(_OfResponse, tag="response.incomplete"):
    example: ClassVar[dict[str, Any]] = _example(
        "response.incomplete", 12, response={**ResponseObject.example, "status": "incomplete"}
    )


class ResponseFailed(_OfResponse, tag="response.failed"):
    example: ClassVar[dict[str, Any]] = _example(
        "response.failed", 12, response={**_STARTED, "status": "failed"}
    )


class _OfItem(ResponseEvent, kw_only=True):
    output_index: int
    item: OutputItem


class ResponseItemAdded(_OfItem, tag="response.output_item.added"):
    example: ClassVar[dict[str, Any]] = _example(
        "response.output_item.added",
        2,
        output_index=0,
        item={**_MESSAGE, "status": "in_progress", "content": []},
    )


class ResponseItemDone(_OfItem, tag="response.output_item.done"):
    example: ClassVar[dict[str, Any]] = _example(
        "response.output_item.done", 7, output_index=0, item=_MESSAGE
    )


class _WithinItem(ResponseEvent, kw_only=True):
    item_id: str
    output_index: int


class _OfPart(_WithinItem, kw_only=True):
    content_index: int = 0
    part: OutputText | OutputRefusal


class ResponsePartAdded(_OfPart, tag="response.content_part.added"):
    example: ClassVar[dict[str, Any]] = _example(
        "response.content_part.added", 3, **_PLACE, part={**_PART, "text": ""}
    )


class ResponsePartDone(_OfPart, tag="response.content_part.done"):
    example: ClassVar[dict[str, Any]] = _example(
        "response.content_part.done", 6, **_PLACE, part=_PART
    )


class ResponseTextDelta(_WithinItem, kw_only=True, tag="response.output_text.delta"):
    example: ClassVar[dict[str, Any]] = _example(
        "response.output_text.delta", 4, **_PLACE, delta=_PART["text"], logprobs=[]
    )

    content_index: int = 0
    delta: str
    logprobs: list[Any] = []


class ResponseTextDone(_WithinItem, kw_only=True, tag="response.output_text.done"):
    example: ClassVar[dict[str, Any]] = _example(
        "response.output_text.done", 5, **_PLACE, text=_PART["text"], logprobs=[]
    )

    content_index: int = 0
    text: str
    logprobs: list[Any] = []


class ResponseRefusalDelta(_WithinItem, kw_only=True, tag="response.refusal.delta"):
    example: ClassVar[dict[str, Any]] = _example(
        "response.refusal.delta", 4, **_PLACE, delta=_REFUSAL
    )

    content_index: int = 0
    delta: str


class ResponseRefusalDone(_WithinItem, kw_only=True, tag="response.refusal.done"):
    example: ClassVar[dict[str, Any]] = _example(
        "response.refusal.done", 5, **_PLACE, refusal=_REFUSAL
    )

    content_index: int = 0
    refusal: str


class ResponseArgumentsDelta(
    _WithinItem, kw_only=True, tag="response.function_call_arguments.delta"
):
    example: ClassVar[dict[str, Any]] = _example(
        "response.function_call_arguments.delta", 9, **_CALL_PLACE, delta=_ARGUMENTS
    )

    delta: str


class ResponseArgumentsDone(_WithinItem, kw_only=True, tag="response.function_call_arguments.done"):
    example: ClassVar[dict[str, Any]] = _example(
        "response.function_call_arguments.done",
        10,
        **_CALL_PLACE,
        name="clock",
        arguments=_ARGUMENTS,
    )

    name: str
    arguments: str


class ResponseErrorEvent(ResponseEvent, kw_only=True, tag="error"):
    """What went wrong after the stream had begun; `response.failed` follows."""

    code: str
    message: str
    param: str | None


def name_of(event: ResponseEvent | type[ResponseEvent]) -> str:
    return str(event.__struct_config__.tag)


EVENTS: Final[dict[str, Any]] = {
    name_of(kind): kind
    for kind in (
        ResponseCreated,
        ResponseInProgress,
        ResponseItemAdded,
        ResponsePartAdded,
        ResponseTextDelta,
        ResponseTextDone,
        ResponseRefusalDelta,
        ResponseRefusalDone,
        ResponsePartDone,
        ResponseArgumentsDelta,
        ResponseArgumentsDone,
        ResponseItemDone,
        ResponseCompleted,
        ResponseIncomplete,
        ResponseFailed,
        ResponseErrorEvent,
    )
}
