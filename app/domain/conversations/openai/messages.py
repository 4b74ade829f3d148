"""Converts messages of OpenAI's wire format for the model: all of them, in their order."""

from collections.abc import Sequence
from typing import Final

import msgspec

from app.domain.agents.llm.api import Image, Message, Role, ToolCall
from app.domain.conversations.chat import api as chat
from app.domain.conversations.chat.api import ClientInput, FunctionResult
from app.kit.errors import Invalid

from .schemas import CompletionMessage, Part

MAX_CHARS: Final = 1_000_000
MAX_VISITOR_CHARS: Final = 100_000
# What the conversation has in the place of an image.
_IMAGE = "[image]"


class Conversation(msgspec.Struct, frozen=True):
    """A client's messages: the question at their end, if they end with one, and those before it.
    `results` are of the functions that the assistant's last message called.
    """

    history: list[Message]
    question: Message | None
    results: list[FunctionResult]
    # The field of the request that has them.
    field: str

    @property
    def has_images(self) -> bool:
        question = [self.question] if self.question is not None else []
        return any(message.parts for message in [*self.history, *question])

    def after_last_answer(self) -> "Conversation":
        """What is new for a conversation that has the rest, of a client that sends it again."""
        return msgspec.structs.replace(self, history=chat.after_last_answer(self.history))

    def with_outputs_apart(self) -> "Conversation":
        """What is new, of a client that sends nothing again: results of calls that are not among
        the messages are of calls that the conversation has.
        """
        made = {call.id for message in self.history for call in message.tool_calls}
        apart = [
            m for m in self.history if m.tool_call_id is not None and m.tool_call_id not in made
        ]
        results = [FunctionResult(m.tool_call_id or "", m.content) for m in apart]
        history = [m for m in self.history if m.tool_call_id is None or m.tool_call_id in made]
        return msgspec.structs.replace(self, history=history, results=results)


def convert(messages: list[CompletionMessage], *, is_trusted: bool) -> Conversation:
    """Instructions of a caller who is not trusted become messages of the user."""
    converter = _Converter(is_trusted=is_trusted)
    converted = [converter.convert(n, message) for n, message in enumerate(messages)]
    return split("messages", converted)


def split(field: str, messages: list[Message]) -> Conversation:
    if not messages or messages[-1].role not in {"user", "tool"}:
        raise Invalid.field(field, "must end with a message of the user or a tool's result")
    question = messages[-1] if messages[-1].role == "user" else None
    history = messages[:-1] if question is not None else messages
    if question is not None and not question.content.strip():
        raise Invalid.field(field, "must end with a message that is not empty")
    return Conversation(history, question, _results(history), field)


def max_chars_of(*, is_visitor: bool) -> int:
    return MAX_VISITOR_CHARS if is_visitor else MAX_CHARS


def check_length(
    field: str, messages: Sequence[Message], client: ClientInput, *, is_visitor: bool
) -> None:
    """Bounds what is sent to a model and stored. Images have a limit of their own."""
    chars = sum(map(_count_chars, messages))
    sent_along = (client.functions, client.response_format, client.options, client.tool_choice)
    chars += len(msgspec.json.encode(sent_along))
    limit = max_chars_of(is_visitor=is_visitor)
    if chars > limit:
        raise Invalid.field(field, f"must have at most {limit} characters in total")


def to_message(role: Role, parts: list[str | Image]) -> Message:
    """A message of these parts. Its text has a mark for each image."""
    texts = [part if isinstance(part, str) else _IMAGE for part in parts]
    content = "\n".join(texts)
    has_images = any(isinstance(part, Image) for part in parts)
    return Message(role, content, parts=tuple(parts) if has_images else ())


def texts_of(field: str, parts: list[str | Image]) -> list[str]:
    """Returns the parts of a message that may have no images."""
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) < len(parts):
        raise Invalid.field(field, "may have text only; send images in a message of the user")
    return texts


def _count_chars(message: Message) -> int:
    calls = sum(len(call.id) + len(call.name) + len(call.arguments) for call in message.tool_calls)
    return len(message.content) + len(message.tool_call_id or "") + calls


def _results(history: list[Message]) -> list[FunctionResult]:
    results: list[FunctionResult] = []
    for message in reversed(history):
        if message.role == "assistant":
            break
        if message.role == "tool" and message.tool_call_id is not None:
            results.insert(0, FunctionResult(message.tool_call_id, message.content))
    return results


class _Converter:
    """Knows the calls of the assistant's last message, whose results may follow."""

    def __init__(self, *, is_trusted: bool) -> None:
        self._is_trusted = is_trusted
        self._open_calls: set[str] = set()
        # The older form has names instead of ids, and one call at a time.
        self._last_call_id = ""

    def convert(self, index: int, message: CompletionMessage) -> Message:
        path = f"messages.{index}"
        if message.role in {"tool", "function"}:
            return self._convert_result(path, message)
        parts = _read_parts(path, message.content)
        if message.role == "assistant":
            converted = self._convert_answer(index, message, texts_of(f"{path}.content", parts))
        elif message.role == "user" or not self._is_trusted:
            converted = to_message("user", parts)
        else:
            converted = to_message("system", parts)
        return msgspec.structs.replace(converted, name=message.name)

    def _convert_answer(self, index: int, message: CompletionMessage, texts: list[str]) -> Message:
        calls = [
            ToolCall(call.id, call.function.name, call.function.arguments)
            for call in message.tool_calls or []
        ]
        if message.function_call is not None:
            call = message.function_call
            calls.append(ToolCall(f"call_{index}", call.name, call.arguments))
        self._open_calls = {call.id for call in calls}
        self._last_call_id = calls[-1].id if calls else ""
        text = "\n".join(texts) or message.refusal or ""
        return Message("assistant", text, tuple(calls))

    def _convert_result(self, path: str, message: CompletionMessage) -> Message:
        is_old = message.role == "function"
        call_id = self._last_call_id if is_old else message.tool_call_id
        if call_id not in self._open_calls:
            field, reason = f"{path}.tool_call_id", "must be the id of a call of the last message"
            raise Invalid.field(field, f"{reason} of the assistant")
        texts = texts_of(f"{path}.content", _read_parts(path, message.content))
        return Message("tool", "\n".join(texts), tool_call_id=call_id)


def _read_parts(path: str, content: str | list[Part] | None) -> list[str | Image]:
    if not isinstance(content, list):
        return [content] if content else []
    return [_read_part(f"{path}.content.{n}", part) for n, part in enumerate(content)]


def _read_part(path: str, part: Part) -> str | Image:
    match part.type:
        case "text" | "input_text" | "output_text":
            return part.text or ""
        case "refusal":
            return part.refusal or part.text or ""
        case "image_url" if part.image_url is not None:
            return Image(part.image_url.url, part.image_url.detail)
    raise Invalid.field(path, f"{part.type[:32]} is not supported; send text or image_url")
