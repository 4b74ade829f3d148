"""Job function: asynchronous chat. Another worker can resume its stored rounds of tool calls."""

import asyncio
from contextlib import aclosing

import msgspec

from app.domain.agents.definition import api as agents
from app.domain.agents.llm.errors import TRANSIENT, ModelBusy, ModelFailed
from app.domain.job import Job, LeaseLost, Postpone, Retry
from app.jobs import background
from app.kit.errors import ApiError, Unavailable
from app.kit.texts import as_json
from app.services import Services
from db.ledger import WorkRow
from db.session import Tx

from . import chat_jobs, persistence, queries, start_turn, turn, turn_usage
from .agent_loop import TokenBudget
from .client_input import ClientInput
from .errors import NoOutcome
from .events import ChatCompleted
from .schemas import ChatReply
from .tool_calls import Round
from .turn import Speaker, Transcript, Turn

_MAX_WAIT_SECONDS = 600.0


class _JobJournal:
    """Stores the rounds of tool calls under the job's lease, before and after each one runs."""

    def __init__(self, job: Job, rounds: list[Round]) -> None:
        self.rounds = rounds
        self._job = job

    async def save(self) -> None:
        async with self._job.checkpoint() as tx:
            rounds = as_json(self.rounds)
            await queries.store_progress(tx, self._job.tenant_id, self._job.ref_id, rounds)


class _JobTurnWriter:
    def __init__(self, job: Job, started: Turn) -> None:
        self._job = job
        self.turn = started
        self.budget: TokenBudget | None = None

    async def save_complete(self, transcript: Transcript) -> ChatReply:
        """Stores reply, usage, events and the end of job and work in one transaction."""
        started, job = self.turn, self._job
        completed = ChatCompleted(
            started.runtime.agent_id,
            started.conversation_id,
            "job",
            job.ref_id,
            "completed",
            transcript.content if started.runtime.log_messages else None,
        )
        async with job.finish() as tx:
            await job.hold(tx)
            reply = await persistence.store(tx, started, transcript, "complete", [completed])
            tenant_id = started.runtime.tenant_id
            row = await queries.end_job(
                tx, tenant_id, job.ref_id, "completed", as_json(reply), None
            )
            if row is not None:
                caller_id = row["caller_id"]
                await chat_jobs.report_end(tx, job.services, tenant_id, caller_id, reply=reply)
        return reply

    async def save_partial(self, transcript: Transcript, failure: ApiError | None) -> None:
        """Stores nothing, because the next attempt continues from the stored rounds. Keeps the
        usage in memory in case there is no next attempt.
        """
        del failure
        self.budget = transcript.budget


async def run_turn(job: Job) -> None:
    writer: _JobTurnWriter | None = None
    try:
        started, journal = await _prepare(job)
        if started is None or journal is None:
            return
        writer = _JobTurnWriter(job, started)
        events = turn.run(job.services, started, writer, live=False, journal=journal)
        async with aclosing(events):
            async for _ in events:
                pass
    except (LeaseLost, asyncio.CancelledError):
        if writer is not None:
            await asyncio.shield(background.spawn(_add_usage_of_cancelled(job, writer)))
        raise
    except ModelBusy as error:
        # Others get the slot of this worker meanwhile; a busy model is no failed attempt.
        raise Postpone from error
    except Unavailable as error:
        raise Retry(error.message) from error
    except ModelFailed as error:
        is_last = job.row.attempt >= job.row.max_attempts
        if error.reason in TRANSIENT and not is_last:
            wait = min(error.retry_after, _MAX_WAIT_SECONDS) if error.retry_after else None
            # The ledger stores the reason alone; the provider's text is for the job's owner.
            raise Retry(f"the model did not answer: {error.reason}", wait) from error
        await _fail(job, error, writer)
    except ApiError as error:
        await _fail(job, error, writer)


async def _prepare(job: Job) -> tuple[Turn | None, _JobJournal | None]:
    async with job.read() as tx:
        row = await queries.find_unfinished_job(tx, job.tenant_id, job.ref_id)
        if row is None:
            # Deleted with its agent, or finished already.
            return None, None
        runtime = await agents.load_runtime(tx, job.services.keyring, row["agent_id"])
        history = await start_turn.read_history(tx, job.tenant_id, row["conversation_id"])
    async with job.checkpoint() as tx:
        await queries.mark_running(tx, job.tenant_id, job.ref_id)
    client = ClientInput()
    if row["client"] is not None:
        client = msgspec.json.decode(row["client"], type=ClientInput)
    has_question = client.has_question
    started = Turn(
        runtime=runtime,
        speaker=Speaker(row["user_id"]),
        source=chat_jobs.source_of(row),
        conversation_id=row["conversation_id"],
        question_id="",
        message_id=row["message_id"],
        is_new=start_turn.has_no_answer(history),
        text=row["question"] if has_question else "",
        context=msgspec.json.decode(row["context"]) if row["context"] else None,
        past=history[:-1] if has_question else history,
        attachments=history[-1].attachments if history and has_question else [],
        question_stored=True,
        holder=job.ref_id,
        client=client,
    )
    return started, _JobJournal(job, msgspec.json.decode(row["progress"], type=list[Round]))


async def _add_usage_of_cancelled(job: Job, writer: _JobTurnWriter) -> None:
    """Adds the usage of a cancelled job, because no later attempt does."""
    if writer.budget is None or not writer.budget.by_model:
        return
    async with job.read() as tx:
        if await queries.find_unfinished_job(tx, job.tenant_id, job.ref_id) is None:
            await turn_usage.add(tx, writer.turn, writer.budget)


async def _fail(job: Job, error: ApiError, writer: _JobTurnWriter | None) -> None:
    async with job.finish() as tx:
        await job.hold(tx)
        budget = writer.budget if writer is not None else None
        is_ended = await chat_jobs.end(
            tx, job.services, job.tenant_id, job.ref_id, "failed", error, budget=budget
        )
        if not is_ended and writer is not None and budget is not None and budget.by_model:
            # Job and conversation were deleted with their agent meanwhile.
            await turn_usage.add(tx, writer.turn, budget)


async def report_cancelled(job: Job) -> None:
    error = ("cancelled", "the agent was deleted")
    async with job.finish_first() as tx:
        await chat_jobs.report_end(tx, job.services, job.tenant_id, job.ref_id, error=error)


async def on_dead_turn(services: Services, tx: Tx, row: WorkRow, error: str) -> None:
    failed = NoOutcome(f"The agent could not answer: {error}")
    await chat_jobs.end(tx, services, row.tenant_id or "", row.ref_id or "", "failed", failed)
