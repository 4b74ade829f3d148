"""Asynchronous chat: accepted with its question and its work in one transaction, then run by a
worker, however often it takes.
"""

from functools import partial
from typing import Any, Literal

import msgspec

from app.domain.agents import brain as brains
from app.domain.chat import keep, queries
from app.domain.chat.begin import Question, begin
from app.domain.chat.calls import Round
from app.domain.chat.errors import JobFinished, JobNotFound
from app.domain.chat.events import ChatCompleted, ChatMessage
from app.domain.chat.schemas import (
    ChatReply,
    ChatRequest,
    JobAccepted,
    JobError,
    JobView,
)
from app.domain.chat.think import Spend
from app.domain.chat.turn import Who
from app.domain.events import service as events
from app.http.errors import ApiError
from app.kit import trace, work
from app.kit.ids import new_id
from app.kit.texts import as_json
from app.kit.work import Doorbell
from app.parts import Parts
from app.security.principal import Principal
from db.fast import Row, tenant_of
from db.session import Scope, Tx

KIND = "chat.turn"
_OVER = frozenset({"completed", "failed", "cancelled"})


async def accept(
    parts: Parts, tx: Tx, principal: Principal, agent_id: str, data: ChatRequest
) -> JobAccepted:
    # On the request's own connection: with a second one, many such requests starve each other.
    brain = await brains.load(tx, parts.keyring, agent_id)
    parts.models.check_key(brain.target)
    job_id = new_id("job")
    question = Question(
        who=Who(principal.user_id),
        source="async",
        text=data.message,
        conversation_id=data.conversation_id,
    )
    begun = await begin(tx, brain, question, job_id=job_id)
    asked = ChatMessage(
        brain.agent_id,
        begun.conversation_id,
        begun.question_id,
        "user",
        "complete",
        data.message if brain.log_messages else None,
    )
    await queries.keep_question(
        tx,
        brain.tenant_id,
        begun.conversation_id,
        begun.question_id,
        data.message,
        keep.title_of(data.message),
        brain.log_messages,
        trace.current().correlation_id,
        events.packed([asked], tenant_id=brain.tenant_id),
    )
    work_id = await work.accept(
        tx, parts.doorbell, KIND, tenant_id=brain.tenant_id, ref_id=job_id, dedupe_key=job_id
    )
    await queries.add_job(
        tx,
        brain.tenant_id,
        job_id,
        agent_id,
        begun.conversation_id,
        principal.user_id,
        work_id,
        begun.message_id,
        as_json(data.context) if data.context is not None else None,
    )
    return JobAccepted(job_id, "pending", begun.conversation_id)


async def status(
    parts: Parts, principal: Principal, agent_id: str, job_id: str, wait_seconds: int
) -> JobView:
    """As it is, or once it is over, whichever comes first within the seconds."""
    row = await _find(parts, principal, agent_id, job_id)
    if wait_seconds and row["status"] not in _OVER:
        tenant_id, work_id = row["tenant_id"], row["work_id"]
        await work.wait(parts.db, parts.doorbell, tenant_id, work_id, wait_seconds)
        row = await _find(parts, principal, agent_id, job_id)
    return _view(row)


async def cancel(parts: Parts, tx: Tx, principal: Principal, agent_id: str, job_id: str) -> JobView:
    """What is not over is stopped; the question stays in the conversation."""
    row = await _one(tx, principal, agent_id, job_id, "conversations:write")
    # The work's row first, as a worker does that finishes it: nobody waits for each other.
    if not await work.cancel(tx, parts.doorbell, row["tenant_id"], row["work_id"]):
        raise JobFinished(f"This job is {row['status']} already")
    await end(tx, row["tenant_id"], job_id, "cancelled", None)
    tx.after_commit.append(lambda: parts.doorbell.announce_done(row["work_id"]))
    return _view(await _one(tx, principal, agent_id, job_id, "conversations:write"))


async def cancel_all(tx: Tx, doorbell: Doorbell, tenant_id: str, agent_ids: list[str]) -> list[str]:
    """Before agents are deleted: whoever waits for one of their answers is told that none comes.
    Gives the jobs.
    """
    cancelled = []
    for row in await queries.unfinished(tx, tenant_id, agent_ids):
        if await work.cancel(tx, doorbell, tenant_id, row["work_id"]):
            await end(tx, tenant_id, row["id"], "cancelled", None)
            tx.after_commit.append(partial(doorbell.announce_done, row["work_id"]))
            cancelled.append(row["id"])
    return cancelled


async def end(
    tx: Tx,
    tenant_id: str,
    job_id: str,
    outcome: Literal["failed", "cancelled"],
    error: ApiError | None,
) -> None:
    """A job that gives no reply: its conversation is free again, who waits for it is told, and
    what its kept rounds used is counted, unless its worker has counted more already.
    """
    told = JobError(error.code, error.message, error.details) if error else None
    packed = as_json(told) if told else None
    ended = await queries.end_job(tx, tenant_id, job_id, outcome, None, packed)
    if ended is None:
        return
    await queries.release(tx, tenant_id, ended["conversation_id"], job_id)
    await _bill(tx, tenant_id, ended, _spent(ended["progress"]))
    completed = ChatCompleted(
        ended["agent_id"],
        ended["conversation_id"],
        "job",
        job_id,
        outcome,
        error=told.code if told else None,
    )
    await events.emit(tx, completed, tenant_id=tenant_id)


def _spent(progress: str) -> Spend:
    spend = Spend()
    for done in msgspec.json.decode(progress, type=list[Round]):
        for model, used in done.used.items():
            spend.add(model, *used)
    return spend


async def _bill(tx: Tx, tenant_id: str, ended: Row, spend: Spend) -> None:
    if spend.by_model:
        own, ids = next(iter(spend.by_model)), (ended["conversation_id"], ended["message_id"])
        usage = await keep.usage_of(spend, own, *ids, ended["user_id"], "async")
        agent_id, correlation_id = ended["agent_id"], trace.current().correlation_id
        await queries.add_usage(tx, tenant_id, agent_id, as_json(usage), correlation_id)


async def _find(parts: Parts, principal: Principal, agent_id: str, job_id: str) -> Row:
    scope: Scope = principal.scope
    async with parts.db.tx(scope, read_only=True) as tx:
        return await _one(tx, principal, agent_id, job_id, "conversations:read")


async def _one(tx: Tx, principal: Principal, agent_id: str, job_id: str, beyond_own: str) -> Row:
    """One's own job needs no permission, anybody else's does."""
    only = None if principal.may(beyond_own) else principal.user_id
    row = await queries.job(tx, tenant_of(tx), job_id, agent_id, only)
    if row is None:
        raise JobNotFound(f"There is no job {job_id[:64]} of this agent")
    return row


def _view(row: Row) -> JobView:
    return JobView(
        row["id"],
        row["status"],
        row["conversation_id"],
        row["created_at"],
        _decoded(row["reply"], ChatReply),
        _decoded(row["error"], JobError),
        row["finished_at"],
    )


def _decoded(text: str | None, kind: Any) -> Any:
    return msgspec.json.decode(text, type=kind) if text else None
