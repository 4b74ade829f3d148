"""The response object: from a reply, or from a stored answer."""

from collections.abc import Sequence
from typing import Any

import msgspec

from app.domain.conversations.chat.api import ClientAnswer
from app.domain.conversations.chat.schemas import ChatReply, TokenUsage
from app.kit import clock

from .completions import client_calls, encode_arguments
from .errors import ResponseNotFound
from .response_items import CALL_PREFIX, MESSAGE_PREFIX
from .response_schemas import (
    IncompleteDetails,
    ItemStatus,
    OutputCall,
    OutputItem,
    OutputMessage,
    OutputRefusal,
    OutputText,
    ResponseConversation,
    ResponseError,
    ResponseObject,
    ResponseSettings,
    ResponseStatus,
    ResponseUsage,
)

_PREFIX = "resp_"
_INCOMPLETE: dict[str, Any] = {"length": "max_output_tokens", "content_filter": "content_filter"}


def response_id(message_id: str) -> str:
    return f"{_PREFIX}{message_id.removeprefix(MESSAGE_PREFIX)}"


def message_id_of(response_id: str) -> str:
    """Raises ResponseNotFound for what is not the id of a response."""
    suffix = response_id.removeprefix(_PREFIX)
    if suffix == response_id:
        raise not_found(response_id)
    return f"{MESSAGE_PREFIX}{suffix}"


def not_found(response_id: str) -> ResponseNotFound:
    return ResponseNotFound(f"You have no response {response_id[:64]}")


def status_of(finish_reason: str) -> ItemStatus:
    """Returns the status of the last item of an answer that ended for this reason."""
    return "incomplete" if finish_reason in _INCOMPLETE else "completed"


def item_id(call_id: str) -> str:
    return f"{CALL_PREFIX}{call_id.removeprefix('call_')}"


def from_reply(agent_id: str, settings: ResponseSettings, reply: ChatReply) -> ResponseObject:
    message = reply.message
    calls = [
        OutputCall(item_id(call.id), call.id, call.function.name, call.function.arguments)
        for call in client_calls(reply.tool_calls)
    ]
    return build(
        agent_id,
        settings,
        message.id,
        created_at=int(message.created_at.timestamp()),
        output=output_of(message.id, message.content, calls, is_refusal=reply.is_refusal),
        finish_reason=reply.finish_reason,
        usage=usage_of(reply.usage),
        conversation=ResponseConversation(reply.conversation_id) if settings.store else None,
    )


def from_answer(answer: ClientAnswer) -> ResponseObject:
    settings = msgspec.convert(answer.kept.response, ResponseSettings)
    calls = [
        OutputCall(item_id(call.id), call.id, call.tool, encode_arguments(call.input))
        for call in answer.calls
    ]
    response = build(
        answer.agent_id,
        settings,
        answer.message_id,
        created_at=int(answer.created_at.timestamp()),
        output=output_of(answer.message_id, answer.content, calls, is_refusal=answer.is_refusal),
        finish_reason=answer.finish_reason,
        usage=usage_of(answer.kept.usage),
        conversation=ResponseConversation(answer.conversation_id),
    )
    if answer.state != "completed":
        response.status = answer.state
        if answer.is_unfinished or not answer.content:
            response.output = []
        for item in response.output[-1:]:
            item.status = "incomplete"
    if answer.error is not None:
        response.error = ResponseError(answer.error.code, answer.error.message)
    return response


def build(
    agent_id: str,
    settings: ResponseSettings,
    message_id: str,
    *,
    created_at: int | None = None,
    status: ResponseStatus = "completed",
    finish_reason: str = "stop",
    output: Sequence[OutputItem] = (),
    **fields: Any,
) -> ResponseObject:
    details = None
    if finish_reason in _INCOMPLETE:
        status, details = "incomplete", IncompleteDetails(_INCOMPLETE[finish_reason])
        for item in output[-1:]:
            item.status = status_of(finish_reason)
    return ResponseObject(
        **msgspec.structs.asdict(settings),
        id=response_id(message_id),
        created_at=int(clock.epoch()) if created_at is None else created_at,
        model=agent_id,
        status=status,
        incomplete_details=details,
        output=[*output],
        **fields,
    )


def output_of(
    message_id: str, content: str, calls: list[OutputCall], *, is_refusal: bool
) -> list[OutputItem]:
    if not content and calls:
        return [*calls]
    part = OutputRefusal(content) if is_refusal else OutputText(content)
    return [OutputMessage(message_id, "completed", [part]), *calls]


def usage_of(usage: TokenUsage | None) -> ResponseUsage | None:
    if usage is None:
        return None
    return ResponseUsage(usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)
