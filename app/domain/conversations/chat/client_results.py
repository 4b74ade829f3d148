"""Results of functions that a client has run: finds the answers that called them.

The id of such a call contains the id of its answer. A client sends only its own calls; by their
ids, the model also sees the calls that the agent made itself in the same turn.
"""

from typing import Any

import msgspec

from app.domain.agents.definition.api import AgentRuntime
from app.domain.agents.llm.api import Message
from app.kit.texts import as_json
from db.session import Tx

from . import client_queries
from .client_input import ClientInput, FunctionResult, answer_of
from .history import PastMessage, call_messages
from .turn import Speaker, Turn

# The newest answers of a history whose calls are added to it, and the most characters of them.
_MAX_ANSWERS = 50
_MAX_CHARS = 500_000
_MAX_VISITOR_CHARS = 50_000
_MAX_BYTES_PER_CHAR = 4
_decode_calls = msgspec.json.Decoder(list[dict[str, Any]]).decode


class _EarlierAnswer(msgspec.Struct, frozen=True):
    """`calls` are those that the agent made itself."""

    conversation_id: str
    is_last: bool
    calls: list[dict[str, Any]]


class AnswerItem(msgspec.Struct, frozen=True):
    """An answer that a client names by its id, with the calls that the client ran."""

    conversation_id: str
    content: str
    calls: list[dict[str, Any]]


async def resolve(
    tx: Tx, runtime: AgentRuntime, speaker: Speaker, client: ClientInput
) -> tuple[ClientInput, str | None]:
    """Adds the agent's own calls to the history of a client. Returns as well the conversation whose
    last answer called the functions that have results now.
    """
    found = await _find_answers(tx, runtime, speaker, _answers_in(client))
    history = _expand(client.history or [], found)
    called = {answer_of(result.call_id) for result in client.results}
    answer = found.get(called.pop() or "") if len(called) == 1 else None
    conversation_id = answer.conversation_id if answer is not None and answer.is_last else None
    before = _new_messages(client, is_known=conversation_id is not None)
    return msgspec.structs.replace(client, history=history, before=before), conversation_id


def _new_messages(client: ClientInput, *, is_known: bool) -> list[Message]:
    """Returns what the conversation has to keep of the client's history."""
    if not client.keeps_history:
        return []
    history = client.history or []
    return after_last_answer(history) if is_known else history


def after_last_answer(history: list[Message]) -> list[Message]:
    """Returns what a conversation does not have yet. It has results with their calls."""
    start = max((n for n, item in enumerate(history) if item.role == "assistant"), default=-1)
    return [message for message in history[start + 1 :] if message.role != "tool"]


async def add(tx: Tx, turn: Turn) -> None:
    """Adds the results to the calls of the past, and to those that are stored."""
    results, ids = turn.client.results, (turn.runtime.tenant_id, turn.conversation_id)
    ours = [
        {"answer_id": answer_id, **msgspec.to_builtins(result)}
        for result in results
        if (answer_id := answer_of(result.call_id)) is not None
    ]
    if ours and turn.client.is_stored:
        await client_queries.store_outputs(tx, *ids, as_json(ours))
    _add_to_past(turn.past, results)


def find_unknown(turn: Turn) -> str | None:
    """Returns a call that has a result, but that the conversation does not have. A client with a
    history of its own may have calls of its own.
    """
    if turn.client.history is not None:
        return None
    known = {call["id"] for message in turn.past for call in message.tool_calls}
    return next((item.call_id for item in turn.client.results if item.call_id not in known), None)


def _add_to_past(past: list[PastMessage], results: list[FunctionResult]) -> None:
    outputs = {result.call_id: result.output for result in results}
    for call in (call for message in past for call in message.tool_calls):
        if call.get("is_client") and call["id"] in outputs:
            call["output"] = outputs[call["id"]]
            call["status"] = "completed"


def _answers_in(client: ClientInput) -> list[str]:
    calls = (call.id for message in client.history or [] for call in message.tool_calls)
    answers = dict.fromkeys(answer for call in calls if (answer := answer_of(call)))
    return list(answers)[-_MAX_ANSWERS:]


async def _find_answers(
    tx: Tx, runtime: AgentRuntime, speaker: Speaker, message_ids: list[str]
) -> dict[str, _EarlierAnswer]:
    """Returns those of the answers that the agent gave to the caller. The oldest are without their
    calls where all calls together are too long.
    """
    if not message_ids:
        return {}
    owner = _owner_of(runtime, speaker)
    rows = await client_queries.find_answers(tx, runtime.tenant_id, message_ids, owner)
    found: dict[str, _EarlierAnswer] = {}
    room = _MAX_VISITOR_CHARS if speaker.is_visitor else _MAX_CHARS
    for row in rows:
        calls = row["calls"] or "[]"
        room -= len(calls)
        decoded = _decode_calls(calls) if room >= 0 else []
        found[row["id"]] = _EarlierAnswer(row["conversation_id"], row["is_last"], decoded)
    return found


def _expand(history: list[Message], found: dict[str, _EarlierAnswer]) -> list[Message]:
    """Adds the calls of each answer once."""
    remaining, expanded = dict(found), list[Message]()
    for message in history:
        answers = dict.fromkeys(answer_of(call.id) or "" for call in message.tool_calls)
        for name in answers:
            if name in remaining:
                expanded += call_messages(remaining.pop(name).calls)
        expanded.append(message)
    return expanded


async def find_items(
    tx: Tx, runtime: AgentRuntime, speaker: Speaker, message_ids: list[str], max_chars: int
) -> dict[str, AnswerItem] | None:
    """Returns those of the answers that the agent gave to the caller; None if they are longer than
    what a request may have.
    """
    if not message_ids:
        return {}
    owner, max_bytes = _owner_of(runtime, speaker), max_chars * _MAX_BYTES_PER_CHAR
    rows = await client_queries.find_items(tx, runtime.tenant_id, message_ids, owner, max_bytes)
    if any(row["is_too_long"] for row in rows):
        return None
    return {
        row["id"]: AnswerItem(
            row["conversation_id"], row["content"], _decode_calls(row["calls"] or "[]")
        )
        for row in rows
    }


def _owner_of(runtime: AgentRuntime, speaker: Speaker) -> client_queries.AnswerOwner:
    return client_queries.AnswerOwner(runtime.agent_id, speaker.user_id, speaker.embed_key_id)
