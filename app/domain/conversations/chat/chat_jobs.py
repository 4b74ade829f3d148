"""Asynchronous chat: accepted with its question and its work in one transaction, then run by a
worker, however often it takes.
"""

from functools import partial
from typing import Any, Final, Literal

import msgspec

from app.context import RequestContext
from app.domain.agents.definition import api as agents
from app.domain.agents.definition.api import AgentRuntime
from app.domain.agents.llm.api import Models
from app.domain.agents.usage import api as usage
from app.domain.area import Areas, FinishedCall
from app.domain.platform.events import api as events
from app.jobs import work
from app.jobs.work import WorkKind
from app.kit import trace
from app.kit.errors import ApiError
from app.kit.ids import new_id
from app.kit.texts import as_json
from app.security.principal import Principal
from app.services import Services
from db.fast import Row, tenant_of
from db.session import Tx

from . import persistence, queries, turn_queries, turn_usage
from .agent_loop import TokenBudget
from .errors import JobFinished, JobNotFound
from .events import ChatCompleted, ChatMessage
from .schemas import ChatReply, ChatRequest, JobAccepted, JobError, JobView, Source
from .start_turn import Question, start_turn
from .tool_calls import Round
from .turn import Speaker, Turn

CHAT_TURN: Final = WorkKind(
    "chat.turn",
    "chat",
    timeout_seconds=960,
    retry_delays=(2, 10, 30),
    awaited=True,
    per_tenant=24,
)
# Tells the caller of a job that it was cancelled with its agent.
REPORT_CANCELLED: Final = WorkKind("chat.report_cancelled")
_FINISHED = frozenset({"completed", "failed", "cancelled"})


async def accept(context: RequestContext, agent_id: str, data: ChatRequest) -> JobAccepted:
    question = Question(
        speaker=Speaker(context.principal.user_id),
        source="async",
        text=data.message,
        conversation_id=data.conversation_id,
        replaces=data.replaces,
        attachments=data.attachments,
        context=data.context,
    )
    # On the request's own connection: with a second one, many such requests starve each other.
    turn = await accept_question(context.tx, context.services, agent_id, question)
    return JobAccepted(turn.holder, "pending", turn.conversation_id)


async def accept_for_caller(
    tx: Tx,
    services: Services,
    agent_id: str,
    text: str,
    *,
    context: dict[str, Any] | None,
    caller_id: str,
) -> str:
    """Asks an agent in a new conversation, for another area: `Areas.on_call_finished` tells it the
    end. Returns the id of the job.
    """
    question = Question(speaker=Speaker(), source="workflow", text=text, context=context)
    return (await accept_question(tx, services, agent_id, question, caller_id)).holder


async def cancel_for_caller(tx: Tx, services: Services, tenant_id: str, job_id: str) -> None:
    work_id = await queries.find_work_id(tx, tenant_id, job_id)
    if work_id is not None and await work.cancel(tx, services.doorbell, tenant_id, work_id):
        await end(tx, services, tenant_id, job_id, "cancelled", None)
        tx.after_commit.append(partial(services.doorbell.announce_done, work_id))


async def accept_question(
    tx: Tx, services: Services, agent_id: str, question: Question, caller_id: str | None = None
) -> Turn:
    """Returns the turn that a job will run, whose holder is the job."""
    if question.speaker.is_visitor:
        raise RuntimeError("a job does not know the groups of a visitor")
    runtime = await agents.load_runtime(tx, services.keyring, agent_id)
    services.get(Models).check_key(runtime.target)
    job_id, user_id = new_id("job"), question.speaker.user_id
    turn = await start_turn(tx, runtime, question, job_id=job_id)
    await persistence.mark_replaced(tx, turn)
    await _store_question(tx, runtime, turn)
    await persistence.keep_attachments(tx, turn)
    work_id = await work.accept(
        tx,
        CHAT_TURN,
        tenant_id=runtime.tenant_id,
        ref_id=job_id,
        dedupe_key=job_id,
    )
    chat_context = as_json(question.context) if question.context is not None else None
    client = as_json(turn.client.without_images()) if question.client is not None else None
    ids = (job_id, agent_id, turn.conversation_id, user_id, work_id, turn.message_id)
    await queries.add_job(tx, runtime.tenant_id, *ids, chat_context, caller_id, client)
    return turn


async def _store_question(tx: Tx, runtime: AgentRuntime, turn: Turn) -> None:
    if not turn.client.has_question:
        return
    asked = ChatMessage(
        runtime.agent_id,
        turn.conversation_id,
        turn.question_id,
        "user",
        "complete",
        turn.text if runtime.log_messages else None,
    )
    await queries.store_question(
        tx,
        runtime.tenant_id,
        turn.conversation_id,
        turn.question_id,
        turn.text,
        persistence.title_of(turn.text),
        as_json(persistence.question_data(turn)),
        runtime.log_messages,
        trace.current().correlation_id,
        events.encode_events([asked], tenant_id=runtime.tenant_id),
    )


async def get(
    services: Services, principal: Principal, agent_id: str, job_id: str, wait_seconds: int
) -> JobView:
    """Waits up to `wait_seconds` for the job to finish."""
    row = await _read(services, principal, agent_id, job_id)
    if wait_seconds and row["status"] not in _FINISHED:
        tenant_id, work_id = row["tenant_id"], row["work_id"]
        await work.wait(services.db, services.doorbell, tenant_id, work_id, wait_seconds)
        row = await _read(services, principal, agent_id, job_id)
    return _view(row)


async def cancel(context: RequestContext, agent_id: str, job_id: str) -> JobView:
    """Stops a job that is not finished; the question stays in the conversation."""
    tx, doorbell, permission = context.tx, context.services.doorbell, "conversations:write"
    row = await _find(tx, context.principal, agent_id, job_id, permission)
    # The work's row is locked first, as a worker does that finishes it.
    if not await work.cancel(tx, doorbell, row["tenant_id"], row["work_id"]):
        raise JobFinished("This job has already finished")
    await end(tx, context.services, row["tenant_id"], job_id, "cancelled", None)
    tx.after_commit.append(partial(doorbell.announce_done, row["work_id"]))
    return _view(await _find(tx, context.principal, agent_id, job_id, permission))


async def cancel_all(tx: Tx, services: Services, tenant_id: str, agent_ids: list[str]) -> list[str]:
    """Before agents are deleted: events tell that their answers will not come. Returns the jobs."""
    doorbell, cancelled = services.doorbell, []
    for row in await queries.list_unfinished_jobs(tx, tenant_id, agent_ids):
        if await work.cancel(tx, doorbell, tenant_id, row["work_id"]):
            await end(tx, services, tenant_id, row["id"], "cancelled", None, is_reported=False)
            if row["caller_id"] is not None:
                # By work of its own: this transaction cancels more jobs, and their workers may
                # have locked the same rows of the caller's area.
                ref_id = row["caller_id"]
                await work.accept(tx, REPORT_CANCELLED, tenant_id=tenant_id, ref_id=ref_id)
            tx.after_commit.append(partial(doorbell.announce_done, row["work_id"]))
            cancelled.append(row["id"])
    return cancelled


async def end(
    tx: Tx,
    services: Services,
    tenant_id: str,
    job_id: str,
    outcome: Literal["failed", "cancelled"],
    error: ApiError | None,
    *,
    is_reported: bool = True,
    budget: TokenBudget | None = None,
) -> bool:
    """Ends a job without a reply: frees its conversation, emits its end, stores the failure, and
    adds the usage: `budget` if its worker knows it, else that of its stored rounds. Returns False
    if the job is over already.
    """
    job_error = JobError(error.code, error.message, error.details) if error else None
    stored_error = as_json(job_error) if job_error else None
    row = await queries.end_job(tx, tenant_id, job_id, outcome, None, stored_error)
    if row is None:
        return False
    await turn_queries.release(tx, tenant_id, row["conversation_id"], job_id)
    ids = (row["conversation_id"], row["message_id"])
    await turn_queries.restore_replaced(tx, tenant_id, *ids)
    await _add_usage(tx, tenant_id, row, budget or _budget_of(row), error)
    if error is not None:
        await _store_failure(tx, tenant_id, row, error)
    completed = ChatCompleted(
        row["agent_id"],
        row["conversation_id"],
        "job",
        job_id,
        outcome,
        error=job_error.code if job_error else None,
    )
    await events.emit(tx, completed, tenant_id=tenant_id)
    failure = (error.code, error.message) if error else ("cancelled", "the job was cancelled")
    if is_reported:
        await report_end(tx, services, tenant_id, row["caller_id"], error=failure)
    return True


async def report_end(
    tx: Tx,
    services: Services,
    tenant_id: str,
    caller_id: str | None,
    *,
    reply: ChatReply | None = None,
    error: tuple[str, str] | None = None,
) -> None:
    """Tells the area that accepted the job for itself."""
    if caller_id is None:
        return
    output = None
    if reply is not None:
        output = {"text": reply.message.content, **msgspec.to_builtins(reply)}
    await services.get(Areas).on_call_finished(
        FinishedCall(tx, services, tenant_id, caller_id, output, error)
    )


def source_of(job: Row) -> Source:
    """Only workflows ask by jobs of their own."""
    return "async" if job["caller_id"] is None else "workflow"


async def _store_failure(tx: Tx, tenant_id: str, job: Row, error: ApiError) -> None:
    failure = {"code": error.code, "message": error.message}
    ids = (job["agent_id"], job["conversation_id"], job["message_id"])
    failed = persistence.failed_event(*ids, source_of(job), error)
    await queries.store_failure(
        tx,
        tenant_id,
        job["conversation_id"],
        job["message_id"],
        as_json({"error": failure}),
        trace.current().correlation_id,
        events.encode_events([failed], tenant_id=tenant_id),
    )


def _budget_of(job: Row) -> TokenBudget:
    budget = TokenBudget()
    for done in msgspec.json.decode(job["progress"], type=list[Round]):
        for model, used in done.used.items():
            budget.add(model, *used)
    return budget


async def _add_usage(
    tx: Tx, tenant_id: str, job: Row, budget: TokenBudget, failure: ApiError | None
) -> None:
    if not budget.by_model and failure is None:
        return
    ids, speaker = (job["conversation_id"], job["message_id"]), Speaker(job["user_id"])
    rows = await turn_usage.build_rows(budget, job["model"], *ids, speaker, source_of(job))
    if failure is not None:
        rows[0] |= {"turns": 1, "messages": 2, "failures": 1, "conversations": int(job["is_new"])}
    correlation_id = trace.current().correlation_id
    await usage.add_usage(tx, tenant_id, job["agent_id"], as_json(rows), correlation_id)


async def _read(services: Services, principal: Principal, agent_id: str, job_id: str) -> Row:
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        return await _find(tx, principal, agent_id, job_id, "conversations:read")


async def _find(tx: Tx, principal: Principal, agent_id: str, job_id: str, permission: str) -> Row:
    """One's own job needs no permission, anybody else's does."""
    only_user = None if principal.may(permission) else principal.user_id
    row = await queries.find_job(tx, tenant_of(tx), job_id, agent_id, only_user)
    if row is None:
        raise JobNotFound(f"There is no job {job_id[:64]} of this agent")
    return row


def _view(row: Row) -> JobView:
    return JobView(
        row["id"],
        row["status"],
        row["conversation_id"],
        row["created_at"],
        _decode(row["reply"], ChatReply),
        _decode(row["error"], JobError),
        row["finished_at"],
    )


def _decode(text: str | None, kind: Any) -> Any:
    return msgspec.json.decode(text, type=kind) if text else None
