"""Converts between chat turns and OpenAI's wire format: an agent's id is the model's name."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec

from app.domain.agents.llm.api import Message
from app.domain.conversations.chat import api as chat
from app.domain.conversations.chat.api import Question, Speaker, StreamEvent
from app.domain.conversations.chat.schemas import ChatReply
from app.kit import clock, sse
from app.kit.errors import Invalid

from .schemas import Choice, Completion, CompletionMessage, CompletionReply, CompletionRequest, Part

_encode = msgspec.json.Encoder().encode
_MAX_VISITOR_CHARS = 100_000
_DONE = b"data: [DONE]\n\n"
_TEXT_TYPES = {"text", "input_text", "output_text", "refusal"}


def to_question(speaker: Speaker, data: CompletionRequest) -> Question:
    """Returns a question with the client's history, so that each request is a conversation."""
    messages = _convert_messages(data.messages, is_trusted=not speaker.is_visitor)
    if data.messages[-1].role != "user" or not messages[-1].content.strip():
        raise Invalid.field("messages", "must end with a message of the user")
    if speaker.is_visitor and sum(len(item.content) for item in messages) > _MAX_VISITOR_CHARS:
        message = f"must have at most {_MAX_VISITOR_CHARS} characters in total"
        raise Invalid.field("messages", message)
    return Question(
        speaker=speaker,
        source="openai",
        text=messages[-1].content,
        messages=messages[:-1],
        temperature=None if data.temperature is None else min(1.0, data.temperature),
        max_tokens=data.max_completion_tokens or data.max_tokens,
        response_format=data.response_format,
    )


def _convert_messages(messages: list[CompletionMessage], *, is_trusted: bool) -> list[Message]:
    """Leaves out tool calls. System messages become user messages unless the caller is trusted."""
    converted = []
    for index, message in enumerate(messages):
        if message.role in {"tool", "function"}:
            continue
        text = _join_text(message.content, index)
        if message.role == "assistant" and not text:
            # The message contains only tool calls.
            continue
        if message.role in {"system", "developer"}:
            converted.append(Message("system" if is_trusted else "user", text))
        else:
            converted.append(Message("assistant" if message.role == "assistant" else "user", text))
    return converted


def _join_text(content: str | list[Part] | None, index: int) -> str:
    if isinstance(content, list):
        if any(part.type not in _TEXT_TYPES for part in content):
            raise Invalid.field(f"messages.{index}.content", "may hold text only")
        return "\n".join(part.text or "" for part in content)
    return content or ""


def to_completion(agent_id: str, reply: ChatReply) -> Completion:
    message = reply.message
    choice = Choice(0, CompletionReply("assistant", message.content), "stop")
    return Completion(
        f"chatcmpl-{message.id}",
        "chat.completion",
        int(message.created_at.timestamp()),
        agent_id,
        [choice],
        reply.usage,
        reply.conversation_id,
    )


class _ChunkEncoder:
    """Encodes the chunks of one streamed completion."""

    def __init__(self, agent_id: str) -> None:
        self._agent_id = agent_id
        self._created = int(clock.epoch())
        self._id = ""

    def start(self, message_id: str) -> bytes:
        self._id = f"chatcmpl-{message_id}"
        return self.choice({"role": "assistant", "content": ""})

    def choice(self, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {
            "index": 0,
            "delta": delta,
            "finish_reason": finish_reason,
            "logprobs": None,
        }
        return self.chunk([choice])

    def chunk(self, choices: list[dict[str, Any]], **fields: Any) -> bytes:
        body = {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._agent_id,
            "choices": choices,
            **fields,
        }
        return b"data: %s\n\n" % _encode(body)


async def encode_chunks(
    agent_id: str, events: AsyncGenerator[StreamEvent, None], *, with_usage: bool
) -> AsyncGenerator[bytes, None]:
    encoder = _ChunkEncoder(agent_id)
    try:
        async with aclosing(events):
            async for event in events:
                if isinstance(event, chat.TurnStarted):
                    yield encoder.start(event.message_id)
                elif isinstance(event, chat.TextDelta):
                    yield encoder.choice({"content": event.delta})
                elif isinstance(event, chat.QueueMoved):
                    # Stock clients know no other events.
                    yield sse.comment(f"queue position {event.position}")
                elif isinstance(event, chat.TurnFinished):
                    yield encoder.choice({}, "stop")
                    if with_usage:
                        yield encoder.chunk([], usage=event.reply.usage)
        yield _DONE
    except Exception as error:  # noqa: BLE001  # becomes the stream's last event
        yield b"data: %s\n\n" % _encode({"error": chat.error_body(error)})
