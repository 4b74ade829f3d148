"""How a turn begins: its conversation is taken, or made, and nobody else has it until it ends."""

import asyncio
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NoReturn

import asyncpg
import msgspec

from app.domain.agents import brain as brains
from app.domain.agents.brain import Brain
from app.domain.agents.errors import AgentNotFound
from app.domain.chat import queries
from app.domain.chat.errors import ConversationBusy, ConversationNotFound
from app.domain.chat.events import ChatStarted
from app.domain.chat.history import Past
from app.domain.chat.schemas import Source
from app.domain.chat.turn import LEASE_SECONDS, Turn, Who
from app.domain.events import service as events
from app.kit import background, logs
from app.kit.ids import new_id
from app.parts import Parts
from db import fast
from db.fast import Row
from db.session import Scope, Tx

log = logs.get("chat")

# A job keeps its conversation until it ends in whatever way; nothing else frees it.
_FOR_A_JOB_SECONDS = 100 * 365 * 86400.0


class Question(msgspec.Struct, frozen=True, kw_only=True):
    who: Who
    source: Source
    text: str
    conversation_id: str | None = None
    context: dict[str, Any] | None = None


async def begin(tx: Tx, brain: Brain, question: Question, *, job_id: str | None = None) -> Turn:
    """Take the conversation for one turn, or begin one. 409 while somebody else has it."""
    turn = _turn(brain, question, job_id)
    seconds = _FOR_A_JOB_SECONDS if job_id else LEASE_SECONDS
    if question.conversation_id is not None and question.who.embed_key_id is None:
        rows = await _take(tx, [turn], seconds, with_job=job_id is not None)
    else:
        rows = await _open(tx, turn, seconds)
    return await _begun(tx, turn, rows)


async def resume(
    parts: Parts, scope: Scope, agent_id: str, questions: list[Question]
) -> list[Turn | Exception | None]:
    """The same for several conversations with one agent, in two ways to the database. Those that
    cannot be had at once are None; ask for each of them alone.
    """
    async with parts.db.tx(scope, read_only=True) as tx:
        brain = await brains.load(tx, parts.keyring, agent_id)
        await parts.models.check(brain.target)
        turns = [_turn(brain, question, None) for question in questions]
        try:
            rows = await _take(tx, turns, LEASE_SECONDS, together=True)
            taken = {holder: list(found) for holder, found in _by_holder(rows)}
            return [
                await _begun(tx, turn, taken[turn.holder]) if turn.holder in taken else None
                for turn in turns
            ]
        except BaseException as error:
            # Nobody will answer in those that were taken already.
            await asyncio.shield(background.spawn(_give_back(parts, turns)))
            if not fast.was_refused(error):
                raise
            return [None] * len(turns)


async def _give_back(parts: Parts, turns: list[Turn]) -> None:
    tenant_id = turns[0].brain.tenant_id
    ids, holders = [turn.conversation_id for turn in turns], [turn.holder for turn in turns]
    try:
        async with parts.db.tx(tenant_id, read_only=True) as tx:
            await queries.release_all(tx, tenant_id, ids, holders)
    except Exception as error:  # noqa: BLE001  # then their leases end by themselves
        log.warning("conversations stay busy for a while", reason=str(error)[:200])


def _turn(brain: Brain, question: Question, job_id: str | None) -> Turn:
    question_id, message_id = new_id("msg"), new_id("msg")
    known = question.conversation_id
    return Turn(
        brain=brain,
        who=question.who,
        source=question.source,
        conversation_id=new_id("cnv") if known is None else known,
        question_id=question_id,
        message_id=message_id,
        is_new=known is None,
        text=question.text,
        context=question.context,
        holder=job_id or message_id,
    )


async def _take(
    tx: Tx, turns: list[Turn], seconds: float, *, with_job: bool = False, together: bool = False
) -> list[Row]:
    brain = turns[0].brain
    wanted = [(turn.conversation_id, turn.holder, turn.who.user_id) for turn in turns]
    ids = (brain.tenant_id, brain.agent_id)
    return await queries.resume(tx, *ids, wanted, seconds, with_job=with_job, together=together)


def _by_holder(rows: list[Row]) -> Iterator[tuple[str, Iterator[Row]]]:
    return groupby(rows, key=lambda row: str(row["holder"]))


async def _open(tx: Tx, turn: Turn, seconds: float) -> list[Row]:
    who, brain = turn.who, turn.brain
    started = ChatStarted(brain.agent_id, turn.conversation_id, who.user_id, turn.source)
    packed = events.packed([started], tenant_id=brain.tenant_id)
    held = (turn.conversation_id, brain.agent_id, turn.holder, seconds, who.user_id)
    given = (who.embed_key_id, who.session_id, turn.source, packed)
    try:
        return await queries.open_new(tx, brain.tenant_id, *held, *given)
    except asyncpg.ForeignKeyViolationError:
        raise AgentNotFound("This agent, or the key to it, was deleted at this moment") from None


async def _begun(tx: Tx, turn: Turn, rows: list[Row]) -> Turn:
    if not rows:
        await _refuse(tx, turn)
    first = rows[0]
    turn.is_opened = first["is_new"]
    turn.past = _folded(rows)
    if not turn.is_opened and first["as_of"] != first["message_count"]:
        turn.past = await past_of(tx, turn.brain.tenant_id, turn.conversation_id)
    turn.is_new = is_new(turn.past)
    return turn


def is_new(past: list[Past]) -> bool:
    """A conversation counts as one once somebody was answered in it."""
    return all(item.role == "user" for item in past)


async def _refuse(tx: Tx, turn: Turn) -> NoReturn:
    brain, who = turn.brain, turn.who
    known = who.embed_key_id is not None or await queries.exists(
        tx, brain.tenant_id, turn.conversation_id, brain.agent_id, who.user_id
    )
    if not known:
        raise ConversationNotFound(
            f"You have no conversation {turn.conversation_id[:64]} with this agent"
        )
    raise ConversationBusy("The agent is still answering in this conversation; wait for it to end")


async def past_of(tx: Tx, tenant_id: str, conversation_id: str) -> list[Past]:
    """The conversation so far."""
    return _folded(await queries.history(tx, tenant_id, conversation_id))


def _folded(rows: list[Row]) -> list[Past]:
    """Tool calls belong to the replies that they led to."""
    past: list[Past] = []
    calls: list[dict[str, Any]] = []
    for row in reversed(rows):
        if row["type"] == "message":
            past.append(Past(row["role"], row["content"] or "", calls))
            calls = []
        elif row["data"] is not None:
            calls.append(msgspec.json.decode(row["data"]))
    return past
