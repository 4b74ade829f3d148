"""Asks a question of the past again, with the history that it had."""

from app.domain.agents.definition.api import AgentRuntime
from app.kit.errors import Invalid
from app.kit.ids import new_id
from app.security.principal import Principal
from db.session import Tx

from . import queries, replay_queries, turn_queries
from .entries import decode_attachments, to_messages
from .errors import MessageNotFound
from .turn import Replay, Turn


async def find(tx: Tx, principal: Principal, runtime: AgentRuntime, answer_id: str) -> Replay:
    """Returns the question of an answer of this agent, in a conversation that the caller may read.
    Raises MessageNotFound for another one.
    """
    ids = (runtime.tenant_id, runtime.agent_id, answer_id)
    question = await replay_queries.find_question(tx, *ids, queries.owner_filter(principal))
    if question is None:
        raise MessageNotFound(f"This agent has no answer {answer_id[:64]}")
    if not (question["content"] or "").strip():
        raise Invalid.field("replay_of", "is the answer to a question without text")
    place = (question["conversation_id"], question["seq"])
    rows = await turn_queries.list_history_before(tx, runtime.tenant_id, *place)
    return Replay(
        conversation_id=question["conversation_id"],
        text=question["content"],
        attachments=decode_attachments(question["attachments"] or "[]"),
        past=to_messages(rows),
        entry_ids=[row["id"] for row in reversed(rows)],
    )


async def copy_history(tx: Tx, turn: Turn) -> None:
    """Gives a conversation that began with a replay what the question had before it."""
    if turn.replay is not None and turn.replay.entry_ids:
        copies = {
            entry_id: new_id(entry_id.partition("_")[0]) for entry_id in turn.replay.entry_ids
        }
        ids = (turn.runtime.tenant_id, turn.conversation_id)
        await replay_queries.copy(tx, *ids, copies, turn.replay.conversation_id)
