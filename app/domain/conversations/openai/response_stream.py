"""A turn as the typed events of a streamed response."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

import msgspec

from app.domain.conversations.chat import api as chat
from app.domain.conversations.chat.api import StreamEvent
from app.domain.conversations.chat.schemas import ChatReply
from app.kit import error_mapping, sse

from . import response_events as events
from . import responses
from .response_events import ResponseEvent
from .response_schemas import (
    ItemStatus,
    OutputCall,
    OutputMessage,
    OutputRefusal,
    OutputText,
    ResponseError,
    ResponseObject,
    ResponseSettings,
    ResponseStatus,
)

_encode = msgspec.json.Encoder().encode
_ENDS: dict[str, type[ResponseEvent]] = {
    "completed": events.ResponseCompleted,
    "incomplete": events.ResponseIncomplete,
}


class _EventEncoder:
    """Numbers the events of one response, and keeps the text of its message."""

    def __init__(self, agent_id: str, settings: ResponseSettings) -> None:
        self._agent_id = agent_id
        self._settings = settings
        self._number = 0
        self._outputs = 0
        self._texts: list[str] = []
        self._is_refusal = False
        # The last call, whose end is not sent yet.
        self._call: OutputCall | None = None
        self._message_id = ""
        self._created_at: int | None = None

    def start(self, message_id: str) -> Iterator[bytes]:
        self._message_id = message_id
        response = self._response("in_progress")
        self._created_at = response.created_at
        yield self._event(events.ResponseCreated, response=response)
        yield self._event(events.ResponseInProgress, response=response)

    def add_text(self, delta: str, *, is_refusal: bool = False) -> Iterator[bytes]:
        if not self._texts:
            self._is_refusal = is_refusal
            yield from self._open_message()
        self._texts.append(delta)
        kind = events.ResponseRefusalDelta if self._is_refusal else events.ResponseTextDelta
        yield self._event(kind, **self._place(), delta=delta)

    def add_call(self, call: chat.ClientCall) -> Iterator[bytes]:
        yield from self._close_message()
        yield from self._close_call()
        arguments, index = call.arguments or "{}", self._outputs
        item = OutputCall(responses.item_id(call.id), call.id, call.name, "", "in_progress")
        yield self._event(events.ResponseItemAdded, output_index=index, item=item)
        place: dict[str, Any] = {"output_index": index, "item_id": item.id}
        yield self._event(events.ResponseArgumentsDelta, **place, delta=arguments)
        yield self._event(
            events.ResponseArgumentsDone, **place, name=call.name, arguments=arguments
        )
        self._call = msgspec.structs.replace(item, arguments=arguments)

    def finish(self, reply: ChatReply) -> Iterator[bytes]:
        if not self._texts and not self._outputs and self._call is None:
            yield from self.add_text("")
        status = responses.status_of(reply.finish_reason)
        yield from self._close_message(status)
        yield from self._close_call(status)
        response = responses.from_reply(self._agent_id, self._settings, reply)
        response.created_at = self._created_at or response.created_at
        yield self._event(_ENDS[response.status], response=response)

    def fail(self, error: Exception) -> Iterator[bytes]:
        body = chat.error_body(error)
        param = error_mapping.to_openai_body(body, error).param
        yield self._event(
            events.ResponseErrorEvent, code=body.code, message=body.message, param=param
        )
        response = self._response("failed")
        response.error = ResponseError(body.code, body.message)
        yield self._event(events.ResponseFailed, response=response)

    def _open_message(self) -> Iterator[bytes]:
        item = OutputMessage(self._message_id, "in_progress", [])
        yield self._event(events.ResponseItemAdded, output_index=self._outputs, item=item)
        yield self._event(events.ResponsePartAdded, **self._place(), part=self._part(""))

    def _close_message(self, status: ItemStatus = "completed") -> Iterator[bytes]:
        if not self._texts:
            return
        text, place = "".join(self._texts), self._place()
        self._texts = []
        if self._is_refusal:
            yield self._event(events.ResponseRefusalDone, **place, refusal=text)
        else:
            yield self._event(events.ResponseTextDone, **place, text=text)
        part = self._part(text)
        yield self._event(events.ResponsePartDone, **place, part=part)
        item = OutputMessage(self._message_id, status, [part])
        yield self._event(events.ResponseItemDone, output_index=self._outputs, item=item)
        self._outputs += 1

    def _close_call(self, status: ItemStatus = "completed") -> Iterator[bytes]:
        """Only what comes after a call tells whether it was cut off."""
        if self._call is None:
            return
        self._call.status = status
        yield self._event(events.ResponseItemDone, output_index=self._outputs, item=self._call)
        self._call = None
        self._outputs += 1

    def _part(self, text: str) -> OutputText | OutputRefusal:
        return OutputRefusal(text) if self._is_refusal else OutputText(text)

    def _place(self) -> dict[str, Any]:
        return {"item_id": self._message_id, "output_index": self._outputs}

    def _response(self, status: ResponseStatus) -> ResponseObject:
        return responses.build(
            self._agent_id,
            self._settings,
            self._message_id,
            created_at=self._created_at,
            status=status,
        )

    def _event(self, kind: type[ResponseEvent], **fields: Any) -> bytes:
        event = kind(sequence_number=self._number, **fields)
        self._number += 1
        return sse.event(events.name_of(event), _encode(event))


async def encode_events(
    agent_id: str, settings: ResponseSettings, turn: AsyncGenerator[StreamEvent, None]
) -> AsyncGenerator[bytes, None]:
    encoder = _EventEncoder(agent_id, settings)
    try:
        async with aclosing(turn):
            async for event in turn:
                if isinstance(event, chat.QueueMoved):
                    # Stock clients know no other events.
                    yield sse.comment(f"queue position {event.position}")
                for encoded in _encode_event(encoder, event):
                    yield encoded
    except Exception as error:  # noqa: BLE001  # becomes an event of the stream
        for encoded in encoder.fail(error):
            yield encoded


def _encode_event(encoder: _EventEncoder, event: StreamEvent) -> Iterator[bytes]:
    match event:
        case chat.TextDelta(delta):
            return encoder.add_text(delta, is_refusal=isinstance(event, chat.RefusalDelta))
        case chat.TurnStarted():
            return encoder.start(event.message_id)
        case chat.ClientCall():
            return encoder.add_call(event)
        case chat.TurnFinished(reply):
            return encoder.finish(reply)
    return iter(())
