"""Answers that clients of OpenAI's wire formats read again, continue, cancel or delete by id."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from app.context import RequestContext
from app.domain.agents.definition.api import AgentRuntime
from app.domain.agents.tools import api as tools
from app.domain.platform.events import api as events
from app.kit.errors import Conflict
from app.services import Services
from db.fast import Row, tenant_of
from db.session import Tx

from . import chat_jobs, client_queries, conversations
from .client_input import ClientInput, job_id_of
from .errors import ConversationBusy
from .schemas import JobError, TokenUsage
from .service import check_client
from .start_turn import Question
from .turn import Speaker

AnswerState = Literal["queued", "in_progress", "completed", "failed", "cancelled"]
_STATES: dict[str, AnswerState] = {
    "pending": "queued",
    "running": "in_progress",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
    # Of an answer that no job prepared.
    "complete": "completed",
    "interrupted": "cancelled",
}


class ClientCallView(msgspec.Struct):
    """A call of a function of the client; `tool` is its name."""

    id: str
    tool: str
    input: Any


class KeptInput(msgspec.Struct):
    """What the client wanted to find again with the answer."""

    response: dict[str, Any] = {}
    usage: TokenUsage | None = None


class _AnswerData(msgspec.Struct):
    finish_reason: str = "stop"
    is_refusal: bool = False
    error: JobError | None = None
    client: KeptInput = msgspec.field(default_factory=KeptInput)


class ClientAnswer(msgspec.Struct, frozen=True, kw_only=True):
    message_id: str
    conversation_id: str
    tenant_id: str
    agent_id: str
    # When the conversation began.
    since: datetime
    created_at: datetime
    state: AnswerState
    content: str
    calls: list[ClientCallView]
    finish_reason: str
    is_refusal: bool
    error: JobError | None
    kept: KeptInput
    job_id: str | None
    # The answer's place in its conversation; None until it is there.
    seq: int | None

    @property
    def is_unfinished(self) -> bool:
        return self.state in {"queued", "in_progress"}


async def find(tx: Tx, speaker: Speaker, message_id: str) -> ClientAnswer | None:
    """Returns the caller's own answer, or None."""
    ids = (message_id, job_id_of(message_id), speaker.user_id, speaker.embed_key_id)
    row = await client_queries.find_answer(tx, tenant_of(tx), *ids)
    return None if row is None else _build(message_id, row)


def _build(message_id: str, row: Row) -> ClientAnswer:
    data = msgspec.json.decode(row["data"] or "{}", type=_AnswerData)
    error, kept = data.error, data.client
    if row["job_error"] is not None:
        error = msgspec.json.decode(row["job_error"], type=JobError)
    if row["client"] is not None and not kept.response:
        client = msgspec.json.decode(row["client"], type=ClientInput)
        kept = msgspec.convert(client.kept, KeptInput)
    return ClientAnswer(
        message_id=message_id,
        conversation_id=row["conversation_id"],
        tenant_id=row["tenant_id"],
        agent_id=row["agent_id"],
        since=row["since"],
        created_at=row["at"],
        state=_STATES[row["job_status"] or row["status"]],
        content=row["content"] or "",
        calls=msgspec.json.decode(row["calls"] or "[]", type=list[ClientCallView]),
        finish_reason=data.finish_reason,
        is_refusal=data.is_refusal,
        error=error,
        kept=kept,
        job_id=row["job_id"],
        seq=row["seq"],
    )


async def accept(services: Services, runtime: AgentRuntime, question: Question) -> str:
    """Accepts a question whose answer a job prepares. Returns the id of that answer."""
    if question.client is not None:
        await check_client(services, runtime, question.speaker, question.client)
    async with services.db.tx(runtime.tenant_id) as tx:
        turn = await chat_jobs.accept_question(tx, services, runtime.agent_id, question)
    return turn.message_id


async def cancel(context: RequestContext, answer: ClientAnswer) -> None:
    """Cancels the job of an answer, unless it has finished."""
    if answer.job_id is None:
        raise Conflict("Only an answer that is prepared in the background can be cancelled")
    if answer.is_unfinished:
        ids = (context.tx, context.services, answer.tenant_id, answer.job_id)
        await chat_jobs.cancel_for_caller(*ids)


async def delete(context: RequestContext, answer: ClientAnswer) -> None:
    """Deletes an answer with its question; also the conversation, if it has nothing else."""
    tx, tenant_id, conversation_id = context.tx, answer.tenant_id, answer.conversation_id
    if answer.is_unfinished:
        raise ConversationBusy("The agent is still answering; cancel the response first")
    seq = answer.seq or 2**62
    question_id, has_more = await client_queries.find_question(
        tx, tenant_id, conversation_id, answer.message_id, seq
    )
    if not has_more:
        await conversations.delete(tx, context.principal, conversation_id)
        return
    ids = [answer.message_id, *([question_id] if question_id else [])]
    job_id = answer.job_id or ""
    call_ids = await client_queries.delete_entries(
        tx, tenant_id, conversation_id, ids, answer.message_id, job_id, seq
    )
    await tools.clear_calls(tx, tenant_id, call_ids)
    await events.delete_message_events(tx, tenant_id, answer.agent_id, ids, answer.since)
