"""Chat completions: builds the question of a request, and encodes the reply."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final, Literal

import msgspec

from app.domain.conversations.chat import api as chat
from app.domain.conversations.chat.api import ClientInput, Question, StreamEvent
from app.domain.conversations.chat.schemas import ChatReply, ToolCallView
from app.kit import clock, error_mapping, sse
from app.kit.errors import Invalid
from app.services import Services

from . import functions, messages, parameters, questions
from .chunk_schemas import ChunkChoice, ChunkDelta, ChunkToolCall, CompletionChunk, StreamError
from .questions import Caller
from .schemas import (
    Choice,
    Completion,
    CompletionEnd,
    CompletionReply,
    CompletionRequest,
    FunctionCall,
    MessageToolCall,
)

EVENTS: Final[dict[str, Any]] = {"message": CompletionChunk | StreamError | Literal["[DONE]"]}
_encode = msgspec.json.Encoder().encode
_DONE = b"data: [DONE]\n\n"


async def build_question(services: Services, caller: Caller, data: CompletionRequest) -> Question:
    parameters.check(data)
    if caller.speaker.is_visitor and data.conversation_id is not None:
        raise Invalid.field("conversation_id", "is for callers who are signed in")
    if caller.speaker.is_visitor and data.store is False:
        raise Invalid.field("store", "false is for callers who are signed in")
    conversation = messages.convert(data.messages, is_trusted=not caller.speaker.is_visitor)
    if data.conversation_id is not None:
        conversation = conversation.after_last_answer()
    choice, field = data.tool_choice, "tool_choice"
    if choice is None and data.functions:
        choice, field = data.function_call, "function_call"
    client = ClientInput(
        functions=functions.read_functions(data),
        tool_choice=functions.read_choice(field, choice),
        takes_one_call=bool(data.functions),
        temperature=data.temperature,
        max_tokens=max_tokens(data),
        response_format=data.response_format,
        options=parameters.read_options(data),
        is_stored=data.store is not False,
    )
    ids = (conversation, client, data.conversation_id)
    return await questions.build(services, caller, *ids)


def max_tokens(data: CompletionRequest) -> int | None:
    return data.max_completion_tokens or data.max_tokens


class CompletionForm(msgspec.Struct, frozen=True):
    """How the answer of an agent is written. `is_old`: for a client of `functions`, which are
    `tools` today.
    """

    agent_id: str
    is_old: bool
    is_stored: bool

    @staticmethod
    def of(caller: Caller, data: CompletionRequest) -> "CompletionForm":
        return CompletionForm(
            caller.runtime.agent_id, bool(data.functions), data.store is not False
        )


def to_completion(form: CompletionForm, reply: ChatReply) -> Completion:
    message, calls = reply.message, client_calls(reply.tool_calls)
    content = message.content if message.content or not calls else None
    texts = (None, content) if reply.is_refusal else (content, None)
    answer = CompletionReply("assistant", *texts)
    if calls and form.is_old:
        answer.function_call = calls[0].function
    elif calls:
        answer.tool_calls = calls
    choice = Choice(0, answer, _finish_reason(reply, form))
    return Completion(
        f"chatcmpl-{message.id}",
        "chat.completion",
        int(message.created_at.timestamp()),
        form.agent_id,
        [choice],
        reply.usage,
        reply.conversation_id if form.is_stored else None,
    )


def client_calls(calls: list[ToolCallView]) -> list[MessageToolCall]:
    """Returns the calls that the client has to run."""
    return [
        MessageToolCall(call.id, FunctionCall(call.tool, encode_arguments(call.input)))
        for call in calls
        if call.status == "requested"
    ]


def encode_arguments(arguments: Any) -> str:
    """A string is what the model wrote instead of JSON."""
    return arguments if isinstance(arguments, str) else _encode(arguments).decode()


def _finish_reason(reply: ChatReply, form: CompletionForm) -> CompletionEnd:
    is_call = form.is_old and reply.finish_reason == "tool_calls"
    return "function_call" if is_call else reply.finish_reason


class _ChunkEncoder:
    """Encodes the chunks of one streamed completion."""

    def __init__(self, form: CompletionForm) -> None:
        self._form = form
        self._created = int(clock.epoch())
        self._id = ""
        self._calls = 0

    def start(self, message_id: str) -> bytes:
        self._id = f"chatcmpl-{message_id}"
        return self.choice(ChunkDelta(role="assistant", content=""))

    def call(self, call: chat.ClientCall) -> bytes:
        function = FunctionCall(call.name, call.arguments or "{}")
        if self._form.is_old:
            return self.choice(ChunkDelta(function_call=function))
        tool_call = ChunkToolCall(self._calls, call.id, "function", function)
        self._calls += 1
        return self.choice(ChunkDelta(tool_calls=[tool_call]))

    def finish(self, reply: ChatReply) -> bytes:
        stored = {"conversation_id": reply.conversation_id} if self._form.is_stored else {}
        return self.choice(ChunkDelta(), _finish_reason(reply, self._form), **stored)

    def choice(
        self, delta: ChunkDelta, finish_reason: CompletionEnd | None = None, **fields: Any
    ) -> bytes:
        return self.chunk([ChunkChoice(0, delta, finish_reason)], **fields)

    def chunk(self, choices: list[ChunkChoice], **fields: Any) -> bytes:
        chunk = CompletionChunk(
            self._id,
            "chat.completion.chunk",
            self._created,
            self._form.agent_id,
            choices,
            **fields,
        )
        return _to_event(chunk)


async def encode_chunks(
    form: CompletionForm, events: AsyncGenerator[StreamEvent, None], *, with_usage: bool
) -> AsyncGenerator[bytes, None]:
    encoder = _ChunkEncoder(form)
    try:
        async with aclosing(events):
            async for event in events:
                match event:
                    case chat.RefusalDelta(delta):
                        yield encoder.choice(ChunkDelta(refusal=delta))
                    case chat.TextDelta(delta):
                        yield encoder.choice(ChunkDelta(content=delta))
                    case chat.TurnStarted():
                        yield encoder.start(event.message_id)
                    case chat.ClientCall():
                        yield encoder.call(event)
                    case chat.QueueMoved(position):
                        # Stock clients know no other events.
                        yield sse.comment(f"queue position {position}")
                    case chat.TurnFinished(reply):
                        yield encoder.finish(reply)
                        if with_usage:
                            yield encoder.chunk([], usage=reply.usage)
    except Exception as error:  # noqa: BLE001  # becomes an event of the stream
        body = chat.error_body(error)
        yield _to_event(StreamError(error_mapping.to_openai_body(body, error)))
    yield _DONE


def _to_event(data: CompletionChunk | StreamError) -> bytes:
    return b"data: %s\n\n" % _encode(data)
