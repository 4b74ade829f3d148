"""Asynchronous chat. A worker that dies leaves its rounds of tool calls behind for the next."""

import asyncio
from contextlib import aclosing

import msgspec

from app.domain.agents import brain as brains
from app.domain.chat import begin, jobs, keep, queries, turn
from app.domain.chat.calls import Round
from app.domain.chat.events import ChatCompleted
from app.domain.chat.schemas import ChatReply
from app.domain.chat.think import Spend
from app.domain.chat.turn import Talk, Turn, Who
from app.domain.models.protocol import PASSING, ModelFailed
from app.http.errors import ApiError, Unavailable
from app.kit import background
from app.kit.texts import as_json
from app.parts import Parts
from db.ledger import WorkRow
from db.session import Tx
from workers.runner import Job, LeaseLost, Retry

_LONGEST_WAIT_SECONDS = 600.0


class GaveUp(ApiError):
    """Every attempt to answer ended without an outcome."""

    status, code = 500, "internal_error"


class _Progress:
    """The rounds so far, written under the job's lease before and after each one runs."""

    def __init__(self, job: Job, rounds: list[Round]) -> None:
        self.rounds = rounds
        self._job = job

    async def keep(self) -> None:
        async with self._job.checkpoint() as tx:
            tenant_id = self._job.row.tenant_id or ""
            await queries.keep_progress(tx, tenant_id, self._job.ref_id, as_json(self.rounds))


class _JobKeeper:
    def __init__(self, job: Job, begun: Turn) -> None:
        self._job = job
        self.turn = begun
        self.spend: Spend | None = None

    async def whole(self, talk: Talk) -> ChatReply:
        """Reply, usage, events, the job's end and the work's end: all of it, once."""
        begun, job = self.turn, self._job
        completed = ChatCompleted(
            begun.brain.agent_id,
            begun.conversation_id,
            "job",
            job.ref_id,
            "completed",
            talk.content if begun.brain.log_messages else None,
        )
        async with job.finish() as tx:
            await job.hold(tx)
            reply = await keep.store(tx, begun, talk, "complete", [completed])
            tenant_id = begun.brain.tenant_id
            await queries.end_job(tx, tenant_id, job.ref_id, "completed", as_json(reply), None)
        return reply

    async def part(self, talk: Talk) -> None:
        """Kept nowhere: the next attempt goes on from the rounds so far. Only what was used is
        remembered, in case there is no next one.
        """
        self.spend = talk.spend


async def run_turn(job: Job) -> None:
    keeper: _JobKeeper | None = None
    try:
        begun, journal = await _prepared(job)
        if begun is None or journal is None:
            return
        keeper = _JobKeeper(job, begun)
        steps = turn.run(job.parts, begun, keeper, live=False, journal=journal)
        async with aclosing(steps):
            async for _ in steps:
                pass
    except (LeaseLost, asyncio.CancelledError):
        if keeper is not None:
            await asyncio.shield(background.spawn(_count(job, keeper)))
        raise
    except Unavailable as error:
        raise Retry(error.message) from error
    except ModelFailed as error:
        last = job.row.attempt >= job.row.max_attempts
        if error.reason in PASSING and not last:
            wait = min(error.retry_after, _LONGEST_WAIT_SECONDS) if error.retry_after else None
            # The ledger is told in which way; the provider's own words are for the job's owner.
            raise Retry(f"the model did not answer: {error.reason}", wait) from error
        await _fail(job, error, keeper)
    except ApiError as error:
        await _fail(job, error, keeper)


async def _prepared(job: Job) -> tuple[Turn | None, _Progress | None]:
    tenant_id = job.row.tenant_id or ""
    async with job.read() as tx:
        row = await queries.task(tx, tenant_id, job.ref_id)
        if row is None:
            # Deleted with its agent, or over already.
            return None, None
        brain = await brains.load(tx, job.parts.keyring, row["agent_id"])
        past = await begin.past_of(tx, tenant_id, row["conversation_id"])
    async with job.checkpoint() as tx:
        await queries.mark_running(tx, tenant_id, job.ref_id)
    begun = Turn(
        brain=brain,
        who=Who(row["user_id"]),
        source="async",
        conversation_id=row["conversation_id"],
        question_id="",
        message_id=row["message_id"],
        is_new=begin.is_new(past),
        text=row["question"],
        context=msgspec.json.decode(row["context"]) if row["context"] else None,
        past=past[:-1],
        question_kept=True,
        holder=job.ref_id,
    )
    return begun, _Progress(job, msgspec.json.decode(row["progress"], type=list[Round]))


async def _count(job: Job, keeper: _JobKeeper) -> None:
    """What a job used that was cancelled, perhaps with its agent; no later attempt counts it."""
    if keeper.spend is None or not keeper.spend.by_model:
        return
    async with job.read() as tx:
        if await queries.task(tx, job.row.tenant_id or "", job.ref_id) is None:
            await keep.bill(tx, keeper.turn, keeper.spend)


async def _fail(job: Job, error: ApiError, keeper: _JobKeeper | None) -> None:
    async with job.finish() as tx:
        await job.hold(tx)
        if keeper is not None and keeper.spend is not None and keeper.spend.by_model:
            # Also when job and conversation were deleted with their agent meanwhile.
            await keep.bill(tx, keeper.turn, keeper.spend)
        await jobs.end(tx, job.row.tenant_id or "", job.ref_id, "failed", error)


async def bury_turn(_parts: Parts, tx: Tx, row: WorkRow, error: str) -> None:
    failed = GaveUp(f"The agent could not answer: {error}")
    await jobs.end(tx, row.tenant_id or "", row.ref_id or "", "failed", failed)
