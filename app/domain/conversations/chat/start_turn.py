"""Starts a turn: takes its conversation, or creates it, so that no other turn runs in it."""

import asyncio
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NoReturn

import asyncpg
import msgspec

from app.domain.agents.definition import api as agents
from app.domain.agents.definition.api import AgentRuntime
from app.domain.agents.definition.errors import AgentNotFound
from app.domain.agents.llm.api import Models
from app.domain.area import Event
from app.domain.platform.events import api as events
from app.jobs import background
from app.kit import logs
from app.kit.errors import Invalid
from app.kit.ids import new_id
from app.kit.texts import as_json
from app.services import Services
from db import fast
from db.fast import Row
from db.session import Scope, Tx

from . import attachments, client_results, turn_queries
from .client_input import ClientInput, message_id_of
from .entries import to_messages
from .errors import ConversationBusy, ConversationNotFound, NotLastAnswer
from .events import ChatStarted
from .history import PastMessage
from .schemas import PREVIEW, Source
from .turn import LEASE_SECONDS, OnTokens, Replay, Speaker, Turn

log = logs.get("chat")

# A job keeps its conversation until it ends; nothing else frees it.
_JOB_LEASE_SECONDS = 100 * 365 * 86400.0


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question to an agent. `on_tokens` is called with the tokens that the turn used."""

    speaker: Speaker
    source: Source
    text: str
    conversation_id: str | None = None
    # The last answer of the conversation, whose place the new one takes.
    replaces: str | None = None
    # The ids of files that belong to the question.
    attachments: list[str] = []
    context: dict[str, Any] | None = None
    # What only clients of OpenAI's wire formats send.
    client: ClientInput | None = None
    on_tokens: OnTokens | None = None
    # What a preview begins with instead of nothing.
    replay: Replay | None = None


async def start_turn(
    tx: Tx, runtime: AgentRuntime, question: Question, *, job_id: str | None = None
) -> Turn:
    """Takes the conversation for one turn, or creates one. 409 while another turn has it."""
    if question.replaces is not None and question.conversation_id is None:
        raise Invalid.field("replaces", "needs the conversation_id of that answer")
    if question.client is not None and question.client.history:
        question = await _resolve_history(tx, runtime, question, question.client)
    turn = _new_turn(runtime, question, job_id)
    turn.attachments = await attachments.find_usable(
        tx, runtime, question.speaker, question.attachments
    )
    seconds = _JOB_LEASE_SECONDS if job_id else LEASE_SECONDS
    if question.conversation_id is not None and not question.speaker.is_visitor:
        rows = await _take(tx, [turn], seconds, with_job=job_id is not None)
    else:
        rows = await _open(tx, turn, seconds)
    turn = await _with_past(tx, turn, rows)
    if question.replay is not None:
        turn.replay, turn.past = question.replay, question.replay.past
        turn.attachments = [*question.replay.attachments, *turn.attachments]
    await _check_last(tx, turn)
    if turn.client.results:
        await client_results.add(tx, turn)
    if question.replaces is not None:
        await _replace_last(tx, turn, question.replaces)
    return turn


async def _resolve_history(
    tx: Tx, runtime: AgentRuntime, question: Question, client: ClientInput
) -> Question:
    ids = (tx, runtime, question.speaker)
    client, known = await client_results.resolve(*ids, client)
    known = question.conversation_id or known
    return msgspec.structs.replace(question, client=client, conversation_id=known)


async def load_usable_runtime(services: Services, scope: Scope, agent_id: str) -> AgentRuntime:
    """Returns an agent whose model can be used now. Holds no connection while the model is
    checked, which may ask Redis.
    """
    async with services.db.tx(scope, autocommit=True) as tx:
        runtime = await agents.load_runtime(tx, services.keyring, agent_id)
    await services.get(Models).check(runtime.target)
    return runtime


async def resume_many(
    services: Services, scope: Scope, agent_id: str, questions: list[Question]
) -> list[Turn | Exception | None]:
    """Starts turns in several conversations with one agent, in two round trips. Those that cannot
    be taken at once are None; ask for each of them alone.
    """
    runtime = await load_usable_runtime(services, scope, agent_id)
    turns = [_new_turn(runtime, question, None) for question in questions]
    try:
        async with services.db.tx(runtime.tenant_id, autocommit=True) as tx:
            rows = await _take(tx, turns, LEASE_SECONDS, together=True)
            taken = {holder: list(entries) for holder, entries in _by_holder(rows)}
            return [
                await _with_past(tx, turn, taken[turn.holder]) if turn.holder in taken else None
                for turn in turns
            ]
    except BaseException as error:
        # No turn will run in those that were taken already.
        await asyncio.shield(background.spawn(_release(services, turns)))
        if not fast.was_refused(error):
            raise
        return [None] * len(turns)


async def _release(services: Services, turns: list[Turn]) -> None:
    tenant_id = turns[0].runtime.tenant_id
    ids, holders = [turn.conversation_id for turn in turns], [turn.holder for turn in turns]
    try:
        async with services.db.tx(tenant_id, autocommit=True) as tx:
            await turn_queries.release_all(tx, tenant_id, ids, holders)
    except Exception as error:  # noqa: BLE001  # then their leases end by themselves
        log.warning("conversations stay busy for a while", reason=str(error)[:200])


def _new_turn(runtime: AgentRuntime, question: Question, job_id: str | None) -> Turn:
    question_id, message_id = new_id("msg"), new_id("msg")
    if job_id is not None:
        # A client that knows its answer finds the job by it.
        message_id = message_id_of(job_id)
    known = question.conversation_id
    return Turn(
        runtime=runtime,
        speaker=question.speaker,
        source=question.source,
        conversation_id=new_id("cnv") if known is None else known,
        question_id=question_id,
        message_id=message_id,
        is_new=known is None,
        text=question.text,
        context=question.context,
        holder=job_id or message_id,
        client=question.client or ClientInput(),
        question_stored=question.client is not None and not question.client.has_question,
        on_tokens=question.on_tokens,
    )


async def _take(
    tx: Tx, turns: list[Turn], seconds: float, *, with_job: bool = False, together: bool = False
) -> list[Row]:
    runtime = turns[0].runtime
    requests = [(turn.conversation_id, turn.holder, turn.speaker.user_id) for turn in turns]
    ids = (runtime.tenant_id, runtime.agent_id)
    is_preview = turns[0].source == PREVIEW
    return await turn_queries.resume(
        tx,
        *ids,
        requests,
        seconds,
        is_preview=is_preview,
        with_job=with_job,
        together=together,
    )


def _by_holder(rows: list[Row]) -> Iterator[tuple[str, Iterator[Row]]]:
    return groupby(rows, key=lambda row: str(row["holder"]))


async def _open(tx: Tx, turn: Turn, seconds: float) -> list[Row]:
    speaker, runtime = turn.speaker, turn.runtime
    started = ChatStarted(runtime.agent_id, turn.conversation_id, speaker.user_id, turn.source)
    announced: list[Event] = [] if turn.source == PREVIEW else [started]
    encoded = events.encode_events(announced, tenant_id=runtime.tenant_id)
    lease = (turn.conversation_id, runtime.agent_id, turn.holder, seconds, speaker.user_id)
    visitor = as_json(speaker.visitor) if speaker.visitor is not None else None
    columns = (speaker.embed_key_id, speaker.session_id, turn.source, encoded, visitor)
    try:
        return await turn_queries.create_or_take(tx, runtime.tenant_id, *lease, *columns)
    except asyncpg.ForeignKeyViolationError:
        raise AgentNotFound("This agent, or the key to it, was deleted at this moment") from None


async def _with_past(tx: Tx, turn: Turn, rows: list[Row]) -> Turn:
    if not rows:
        await _refuse(tx, turn)
    first = rows[0]
    turn.created_conversation = first["is_new"]
    turn.past = to_messages(rows)
    if not turn.created_conversation and first["as_of"] != first["message_count"]:
        turn.past = await read_history(tx, turn.runtime.tenant_id, turn.conversation_id)
    turn.is_new = has_no_answer(turn.past)
    return turn


async def _replace_last(tx: Tx, turn: Turn, message_id: str) -> None:
    """Takes the last question and its answer out of what the model sees. They stay in the
    conversation until the new answer is stored.
    """
    past, questions = turn.past, [n for n, item in enumerate(turn.past) if item.role == "user"]
    if not questions or past[-1].id != message_id or past[-1].role != "assistant":
        await _give_back(tx, turn)
        raise NotLastAnswer("Only the last answer of a conversation can be replaced")
    _replace_from(turn, questions[-1])


def _replace_from(turn: Turn, place: int) -> None:
    """Takes what the conversation has from this place on out of what the model sees."""
    replaced = turn.past[place:]
    if replaced:
        turn.replaced_from = replaced[0].seq
        if replaced[-1].role == "assistant" and replaced[-1].content:
            turn.replaced_answer = (replaced[-1].id, replaced[-1].seq)
        turn.past = turn.past[:place]


async def _check_last(tx: Tx, turn: Turn) -> None:
    """Raises for a client that goes on after another answer than the last one, or with results of
    calls that this answer did not make.
    """
    if turn.client.follows is not None:
        place = _find_last(turn.past, turn.client.follows)
        if place is None:
            await _give_back(tx, turn)
            raise NotLastAnswer("Only the last answer of a conversation can be continued")
        _replace_from(turn, place + 1)
    unknown = client_results.find_unknown(turn)
    if unknown is not None:
        await _give_back(tx, turn)
        raise Invalid.field(
            "call_id", f"the last answer of the conversation has no call {unknown[:64]}"
        )


def _find_last(past: list[PastMessage], message_id: str) -> int | None:
    """Returns the place of this answer, if only answers that failed or were interrupted came
    later: the client tries again.
    """
    place = next((n for n, item in enumerate(past) if item.id == message_id), None)
    later = past[place + 1 :] if place is not None else []
    is_answered = any(item.role != "user" and item.is_complete for item in later)
    return None if is_answered else place


async def _give_back(tx: Tx, turn: Turn) -> None:
    """Ends the turn's hold of its conversation before anything was said."""
    lease = (turn.runtime.tenant_id, turn.conversation_id, turn.holder)
    if turn.created_conversation:
        await turn_queries.delete_empty(tx, *lease)
    else:
        await turn_queries.release(tx, *lease)


def has_no_answer(past: list[PastMessage]) -> bool:
    """A conversation counts as one once an agent has answered in it."""
    return all(message.role == "user" for message in past)


async def _refuse(tx: Tx, turn: Turn) -> NoReturn:
    if not turn.speaker.is_visitor:
        speaker, is_preview = turn.speaker, turn.source == PREVIEW
        ids = (turn.runtime, speaker, turn.conversation_id)
        await require_conversation(tx, *ids, is_preview=is_preview)
    raise ConversationBusy("The agent is still answering in this conversation; wait for it to end")


async def require_conversation(
    tx: Tx,
    runtime: AgentRuntime,
    speaker: Speaker,
    conversation_id: str,
    *,
    is_preview: bool = False,
) -> None:
    """Raises ConversationNotFound unless the user has this conversation with the agent."""
    ids = (conversation_id, runtime.agent_id, speaker.user_id)
    if not await turn_queries.exists(tx, runtime.tenant_id, ids, is_preview=is_preview):
        raise ConversationNotFound(
            f"You have no conversation {conversation_id[:64]} with this agent"
        )


async def read_history(tx: Tx, tenant_id: str, conversation_id: str) -> list[PastMessage]:
    return to_messages(await turn_queries.list_history(tx, tenant_id, conversation_id))
