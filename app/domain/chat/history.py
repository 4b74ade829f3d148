"""What of a conversation the model is shown: the newest part that fits."""

from typing import Any

import msgspec

from app.domain.chat.calls import shown
from app.domain.models.protocol import Message, Role, ToolCall, most_tokens

MAX_TOKENS = 32_000
# For the words around each message.
_PER_MESSAGE = 4


class Past(msgspec.Struct):
    """A message of the past, with the tool calls that led to it."""

    role: str
    content: str
    tool_calls: list[dict[str, Any]] = []


def system_message(prompt: str, context: dict[str, Any] | None) -> Message:
    if not context:
        return Message("system", prompt)
    facts = msgspec.json.encode(context).decode()
    return Message("system", f"{prompt}\n\nContext of this conversation, as JSON:\n{facts}")


def fitting(past: list[Past], budget: int, *, with_calls: bool) -> list[Message]:
    """The newest messages within the budget, the oldest of them first, none cut in two.

    It starts with something that the user said: an answer without its question confuses. Calls of
    the past are for a model that can call something now.
    """
    kept: list[list[Message]] = []
    for item in reversed(past):
        messages = _messages(item, with_calls=with_calls)
        cost = sum(map(_cost, messages))
        if cost > budget:
            break
        budget -= cost
        kept.append(messages)
    while kept and kept[-1][0].role != "user":
        kept.pop()
    return [message for messages in reversed(kept) for message in messages]


def trimmed(told: list[Message], budget: int) -> list[Message]:
    """The same for a history that the caller brings along; what it says as the system stays."""
    if sum(map(_cost, told)) <= budget:
        return told
    kept = [message for message in told if message.role == "system"]
    said = [Past(message.role, message.content) for message in told if message.role != "system"]
    budget -= sum(map(_cost, kept))
    return [*kept, *fitting(said, budget, with_calls=False)]


def _cost(message: Message) -> int:
    called = sum(most_tokens(call.arguments) for call in message.tool_calls)
    return _PER_MESSAGE + most_tokens(message.content) + called


def joined(messages: list[Message]) -> list[Message]:
    """Neighbours of one role as one: a question that got no answer stands beside the next, and
    some providers refuse two in a row.
    """
    found: list[Message] = []
    for message in messages:
        last = found[-1] if found else None
        plain = not message.tool_calls and message.tool_call_id is None
        if (
            plain
            and last is not None
            and last.role == message.role
            and not last.tool_calls
            and message.role != "system"
        ):
            found[-1] = Message(message.role, f"{last.content}\n\n{message.content}".strip())
        else:
            found.append(message)
    return found


def budget_for(window: int, max_tokens: int, *spoken: str) -> int:
    """What is left for the past of a model's window, once the rest has its place."""
    # A model whose window is smaller than the longest reply still has to see the question.
    reserve = min(max_tokens, window // 2)
    needed = sum(_PER_MESSAGE + most_tokens(text) for text in spoken)
    return min(MAX_TOKENS, max(0, window - reserve - needed))


def _object(given: Any) -> str:
    return msgspec.json.encode(given if isinstance(given, dict) else {}).decode()


def _messages(item: Past, *, with_calls: bool) -> list[Message]:
    own = [call for call in item.tool_calls if with_calls and call.get("function")]
    if item.role == "user" or not own:
        role: Role = "user" if item.role == "user" else "assistant"
        return [Message(role, item.content)]
    calls = tuple(ToolCall(call["id"], call["function"], _object(call["input"])) for call in own)
    results = [Message("tool", shown(call["output"]), tool_call_id=call["id"]) for call in own]
    return [Message("assistant", "", calls), *results, Message("assistant", item.content)]
