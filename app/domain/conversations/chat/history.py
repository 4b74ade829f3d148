"""Which part of a conversation the model sees: the newest messages that fit."""

from collections.abc import Sequence
from typing import Any

import msgspec

from app.domain.agents.definition.api import AgentRuntime
from app.domain.agents.knowledge import api as knowledge
from app.domain.agents.knowledge.api import Passages, Reader
from app.domain.agents.llm.api import Message, ToolCall, upper_bound_tokens
from app.services import Services

from .schemas import MessageAttachment
from .tool_calls import render_output

MAX_TOKENS = 32_000
_NO_RESULT = "The caller did not return a result of this call."
# What a provider adds around each message.
_TOKENS_PER_MESSAGE = 4


class PastMessage(msgspec.Struct):
    """A message of the past, with the tool calls that led to it. `seq` is its place in the
    conversation.
    """

    role: str
    content: str
    tool_calls: list[dict[str, Any]] = []
    id: str = ""
    seq: int = 0
    attachments: list[MessageAttachment] = []
    # What a client said before it.
    before: list[Message] = []
    is_complete: bool = True


def system_message(
    prompt: str, context: dict[str, Any] | None = None, passages: str | None = None
) -> Message:
    facts = msgspec.json.encode(context).decode() if context else None
    return Message("system", system_text(prompt, facts, passages))


def system_text(prompt: str, facts: str | None, passages: str | None) -> str:
    """`facts` is the context of the conversation as JSON."""
    parts = [prompt]
    if facts:
        parts.append(f"Context of this conversation, as JSON:\n{facts}")
    if passages:
        parts.append(passages)
    return "\n\n".join(parts)


def select_history(
    past: list[PastMessage], budget: int, *, with_calls: bool, is_answering: bool = False
) -> list[Message]:
    """The newest messages within the budget, the oldest of them first, none cut in two.

    The first is the user's: an answer without its question confuses. Calls of the past are for a
    model that can call something now. While a question `is_answering`, because a client has run
    functions for it, all since that question is needed, whatever it costs.
    """
    selected: list[list[Message]] = []
    for item in reversed(past):
        messages = _messages(item, with_calls=with_calls)
        if not messages:
            continue
        cost = sum(map(_cost, messages))
        if cost > budget and not is_answering:
            break
        is_answering = is_answering and item.role != "user"
        budget -= cost
        selected.append(messages)
    while selected and all(message.role != "user" for message in selected[-1]):
        selected.pop()
    return [message for messages in reversed(selected) for message in messages]


def _cost(message: Message) -> int:
    called = sum(upper_bound_tokens(call.arguments) for call in message.tool_calls)
    return _TOKENS_PER_MESSAGE + upper_bound_tokens(message.content) + called


def merge_neighbours(messages: list[Message]) -> list[Message]:
    """Joins neighbours of one role: a question without an answer stands beside the next one, and
    some providers refuse two in a row.
    """
    merged: list[Message] = []
    for message in messages:
        last = merged[-1] if merged else None
        if (
            last is not None
            and last.role == message.role
            and message.role != "system"
            and _is_plain(message)
            and _is_plain(last)
        ):
            # A question that failed may be asked again in the same words.
            if message.content != last.content:
                merged[-1] = Message(message.role, f"{last.content}\n\n{message.content}".strip())
        else:
            merged.append(message)
    return merged


def _is_plain(message: Message) -> bool:
    return not message.tool_calls and message.tool_call_id is None and not message.parts


def budget_for(window: int, max_tokens: int, *texts: str) -> int:
    """Returns how many tokens of a model's window remain for the history."""
    return limit_budget(room_for(window, max_tokens, *texts))


def limit_budget(room: int) -> int:
    return min(MAX_TOKENS, max(0, room))


def room_for(window: int, max_tokens: int, *texts: str) -> int:
    """Returns how many tokens of a model's window remain beside these texts and the answer."""
    # A model whose window is smaller than the longest reply still has to see the question.
    reserve = min(max_tokens, window // 2)
    needed = sum(_TOKENS_PER_MESSAGE + upper_bound_tokens(text) for text in texts)
    return max(0, window - reserve - needed)


def _as_object(arguments: Any) -> str:
    return msgspec.json.encode(arguments if isinstance(arguments, dict) else {}).decode()


def _messages(item: PastMessage, *, with_calls: bool) -> list[Message]:
    """Empty for an answer that failed before its first word."""
    if item.role == "user":
        return [*item.before, Message("user", item.content)]
    own = [call for call in item.tool_calls if with_calls and call.get("function")]
    messages = [*item.before, *call_messages([call for call in own if not call.get("is_client")])]
    client_calls = [call for call in own if call.get("is_client")]
    if client_calls:
        # The answer ended with them.
        return messages + call_messages(client_calls, item.content)
    if item.content or messages:
        messages.append(Message("assistant", item.content))
    return messages


def call_messages(calls: list[dict[str, Any]], content: str = "") -> list[Message]:
    """The calls of an earlier answer and their results, as the model sees them."""
    if not calls:
        return []
    made = tuple(
        ToolCall(call["id"], call["function"], _as_object(call["input"])) for call in calls
    )
    results = [Message("tool", _result_of(call), tool_call_id=call["id"]) for call in calls]
    return [Message("assistant", content, made), *results]


def _result_of(call: dict[str, Any]) -> str:
    if call.get("status") == "requested":
        return _NO_RESULT
    # What a client returned is limited where it comes in.
    return str(call["output"]) if call.get("is_client") else render_output(call["output"])


_MAX_TOKENS = 6000
# How many questions before the newest one may say what that is about.
_MAX_QUESTIONS = 2


async def find_passages(
    services: Services,
    runtime: AgentRuntime,
    window: int,
    query: str,
    *,
    reader: Reader,
    has_attachments: bool = False,
    earlier: Sequence[str] = (),
) -> Passages | None:
    """Returns passages that take at most a third of the model's window, and beside attachments a
    sixth, of documents that the reader may know. `earlier`: the questions before this one.
    """
    if runtime.knowledge is None:
        return None
    max_tokens = min(_MAX_TOKENS, window // (6 if has_attachments else 3))
    ids = (services, runtime.tenant_id, runtime.knowledge)
    return await knowledge.find_passages(
        *ids,
        query,
        max_tokens,
        reader=reader,
        earlier=earlier,
        target=runtime.target,
    )


def list_questions(
    text: str, past: Sequence[PastMessage | Message], client_history: list[Message] | None = None
) -> list[str]:
    """Returns the question of a turn after those before it. Where the turn has none, because it
    goes on with the results of a client's functions, the one before it is the question.
    """
    messages = past if client_history is None else client_history
    earlier = [message.content for message in messages if message.role == "user"]
    questions = [*earlier[-_MAX_QUESTIONS:], text]
    return questions if text.strip() or not earlier else questions[:-1]
