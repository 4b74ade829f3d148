"""Converts the input items of a response for the model: all of them, in their order."""

from collections.abc import Mapping
from typing import Final

import msgspec

from app.domain.agents.llm.api import Image, Message, ToolCall
from app.kit.errors import Invalid

from .messages import Conversation, split, texts_of, to_message
from .response_schemas import InputItem, InputPart

MESSAGE_PREFIX: Final = "msg_"
CALL_PREFIX: Final = "fc_"
_PREFIXES = (MESSAGE_PREFIX, CALL_PREFIX)


class StoredItems(msgspec.Struct, frozen=True):
    """Answers and calls of functions by the ids of their items, which a client may send instead.
    `in_conversation` are those that the conversation has which goes on.
    """

    messages: dict[str, Message] = {}
    in_conversation: frozenset[str] = frozenset()


def list_answers(items: str | list[InputItem], *, goes_on: bool) -> list[str]:
    """Returns the answers to which items belong that are only named; where a conversation goes on,
    also those of items that it may have.
    """
    if isinstance(items, str):
        return []
    named = [_id_of(item) for item in items if goes_on or item.type == "item_reference"]
    # An item's id has the id of its answer, and a call's a number as well.
    parts = [item_id.split("_") for item_id in named if item_id.startswith(_PREFIXES)]
    return list(dict.fromkeys(f"{MESSAGE_PREFIX}{part[1]}" for part in parts))


def _id_of(item: InputItem) -> str:
    if item.type == "function_call":
        return f"{CALL_PREFIX}{(item.call_id or '').removeprefix('call_')}"
    return item.id or ""


def convert(items: str | list[InputItem], stored: StoredItems, *, is_trusted: bool) -> Conversation:
    """Instructions of a caller who is not trusted become messages of the user. Leaves out what the
    conversation has.
    """
    if isinstance(items, str):
        return split("input", [Message("user", items)])
    converter = _Converter(stored.messages, is_trusted=is_trusted)
    messages = [
        converter.convert(f"input.{n}", item)
        for n, item in enumerate(items)
        if _id_of(item) not in stored.in_conversation
    ]
    return split("input", _join_calls(messages))


def _join_calls(messages: list[Message]) -> list[Message]:
    """Calls side by side belong to one answer, with the text before them."""
    joined: list[Message] = []
    for message in messages:
        last = joined[-1] if joined else None
        if message.tool_calls and last is not None and last.role == "assistant":
            calls = (*last.tool_calls, *message.tool_calls)
            joined[-1] = msgspec.structs.replace(last, tool_calls=calls)
        else:
            joined.append(message)
    return joined


class _Converter:
    def __init__(self, known: Mapping[str, Message], *, is_trusted: bool) -> None:
        self._known = known
        self._is_trusted = is_trusted

    def convert(self, path: str, item: InputItem) -> Message:
        match item.type:
            case "message":
                return self._convert_message(path, item)
            case "function_call":
                return _convert_call(path, item)
            case "function_call_output":
                return _convert_output(path, item)
            case "item_reference":
                return self._find(path, item)
        raise Invalid.field(f"{path}.type", f"{item.type[:64]} is not supported")

    def _convert_message(self, path: str, item: InputItem) -> Message:
        parts = _read_parts(f"{path}.content", item.content)
        if item.role is None:
            raise Invalid.field(f"{path}.role", "is required")
        if item.role == "assistant":
            return Message("assistant", "\n".join(texts_of(f"{path}.content", parts)))
        is_instruction = item.role in {"system", "developer"}
        return to_message("system" if is_instruction and self._is_trusted else "user", parts)

    def _find(self, path: str, item: InputItem) -> Message:
        message = self._known.get(item.id or "")
        if message is None:
            item_id = (item.id or "")[:64]
            raise Invalid.field(f"{path}.id", f"you have no item {item_id} with this agent")
        return message


def _convert_call(path: str, item: InputItem) -> Message:
    if item.call_id is None or item.name is None:
        raise Invalid.field(path, "needs call_id and name")
    return Message("assistant", "", (ToolCall(item.call_id, item.name, item.arguments or "{}"),))


def _convert_output(path: str, item: InputItem) -> Message:
    if item.call_id is None or item.output is None:
        raise Invalid.field(path, "needs call_id and output")
    texts = texts_of(f"{path}.output", _read_parts(f"{path}.output", item.output))
    return Message("tool", "\n".join(texts), tool_call_id=item.call_id)


def _read_parts(path: str, content: str | list[InputPart] | None) -> list[str | Image]:
    if not isinstance(content, list):
        return [content] if content else []
    return [_read_part(f"{path}.{n}", part) for n, part in enumerate(content)]


def _read_part(path: str, part: InputPart) -> str | Image:
    match part.type:
        case "input_text" | "output_text" | "text":
            return part.text or ""
        case "refusal":
            return part.refusal or ""
        case "input_image" if part.image_url is not None:
            return Image(part.image_url, part.detail)
    raise Invalid.field(path, f"{part.type[:32]} is not supported; send input_text or input_image")
