"""Agents in OpenAI's wire format: a stock client talks to one by its base URL and an agent's id."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from app.domain.agents.brain import Brain
from app.domain.chat import begin as chat
from app.domain.chat import stream
from app.domain.chat.schemas import ChatReply, TokenUsage
from app.domain.chat.steps import Delta, Finished, Started, Step
from app.domain.chat.turn import Turn, Who
from app.domain.models.protocol import Message
from app.http.errors import Invalid
from app.kit import clock
from app.parts import Parts

_encode = msgspec.json.Encoder().encode
_VISITOR_CHARS = 100_000
_DONE = b"data: [DONE]\n\n"
_TEXT_TYPES = {"text", "input_text", "output_text", "refusal"}


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


async def begin(parts: Parts, brain: Brain, who: Who, data: CompletionRequest) -> Turn:
    """The client brings its history along, so that every request is a conversation of its own."""
    visitor = who.embed_key_id is not None
    told = _messages(data.messages, trusted=not visitor)
    if data.messages[-1].role != "user" or not told[-1].content.strip():
        raise Invalid.field("messages", "must end with what the user says")
    if visitor and sum(len(message.content) for message in told) > _VISITOR_CHARS:
        raise Invalid.field("messages", f"may have {_VISITOR_CHARS} characters together")
    async with parts.db.tx(brain.tenant_id, read_only=True) as tx:
        question = chat.Question(who=who, source="openai", text=told[-1].content)
        begun = await chat.begin(tx, brain, question)
    begun.told = told[:-1]
    if data.temperature is not None:
        begun.temperature = min(1.0, data.temperature)
    begun.max_tokens = data.max_completion_tokens or data.max_tokens
    begun.response_format = data.response_format
    return begun


def _messages(given: list[CompletionMessage], *, trusted: bool) -> list[Message]:
    """A visitor does not speak as the system; tools are the agent's own affair."""
    found = []
    for index, message in enumerate(given):
        if message.role in {"tool", "function"}:
            continue
        text = _text(message.content, index)
        if message.role == "assistant" and not text:
            # It only called tools, which are not here.
            continue
        if message.role in {"system", "developer"}:
            found.append(Message("system" if trusted else "user", text))
        else:
            found.append(Message("assistant" if message.role == "assistant" else "user", text))
    return found


def _text(content: str | list[Part] | None, index: int) -> str:
    if isinstance(content, list):
        if any(part.type not in _TEXT_TYPES for part in content):
            raise Invalid.field(f"messages.{index}.content", "may hold text only")
        return "\n".join(part.text or "" for part in content)
    return content or ""


def completion(agent_id: str, reply: ChatReply) -> Completion:
    said = reply.message
    choice = Choice(0, CompletionReply("assistant", said.content), "stop")
    return Completion(
        f"chatcmpl-{said.id}",
        "chat.completion",
        int(said.created_at.timestamp()),
        agent_id,
        [choice],
        reply.usage,
        reply.conversation_id,
    )


async def chunks(
    begun: Turn, steps: AsyncGenerator[Step, None], *, with_usage: bool
) -> AsyncGenerator[bytes, None]:
    created = int(clock.epoch())

    def chunk(choices: list[dict[str, Any]], **more: Any) -> bytes:
        body = {
            "id": f"chatcmpl-{begun.message_id}",
            "object": "chat.completion.chunk",
            "created": created,
            "model": begun.brain.agent_id,
            "choices": choices,
            **more,
        }
        return b"data: %s\n\n" % _encode(body)

    def choice(delta: dict[str, Any], reason: str | None = None) -> list[dict[str, Any]]:
        return [{"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}]

    try:
        async with aclosing(steps):
            async for step in steps:
                if isinstance(step, Started):
                    yield chunk(choice({"role": "assistant", "content": ""}))
                elif isinstance(step, Delta):
                    yield chunk(choice({"content": step.delta}))
                elif isinstance(step, Finished):
                    yield chunk(choice({}, "stop"))
                    if with_usage:
                        yield chunk([], usage=step.reply.usage)
        yield _DONE
    except Exception as error:  # noqa: BLE001  # told in the stream, which has begun
        yield b"data: %s\n\n" % _encode({"error": stream.told(error)})
