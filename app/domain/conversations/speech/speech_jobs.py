"""Speech jobs: stored together with their work, run by a worker, and waited for here."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, Literal

import msgspec

from app.domain.agents.definition.errors import AgentNotFound
from app.domain.agents.llm.api import SpeechOptions, TranscriptionOptions, UsedTokens
from app.domain.agents.llm.errors import ModelFailed, ModelNotConfigured, refused_by_provider
from app.jobs import background, work
from app.jobs.work import WorkKind
from app.kit.errors import (
    ApiError,
    Invalid,
    ProviderError,
    Unavailable,
    UnsupportedFileType,
)
from app.kit.files import FileNotStored, StoredFile
from app.kit.ids import new_id
from app.kit.texts import as_json
from app.services import Services
from db.fast import Row
from db.session import Tx

from . import queries
from .conversion import AudioFormat
from .errors import RecordingTooLarge

# A retry does no harm: neither a transcript nor a spoken text has an effect.
RUN_SPEECH: Final = WorkKind(
    "speech.run",
    "speech",
    # Several of the longest recordings share the recogniser's thread.
    timeout_seconds=900,
    retry_delays=(1, 2),
    awaited=True,
    per_tenant=2,
)
FOLDER: Final = "speech/"
# How long a job may wait for a worker.
QUEUE_SECONDS = 30.0
_NO_WORKER = (
    f"No worker took it in time: the tenant's share of {RUN_SPEECH.per_tenant} at a time in each "
    "worker may be in use, or no worker is running that takes the queue `speech`"
)
_AGENT_DELETED = "The agent was deleted meanwhile"
_NO_OUTCOME = "It took too long; try again later, or with less of it"
_ERRORS: dict[str, type[ApiError]] = {
    kind.code: kind
    for kind in (
        UnsupportedFileType,
        RecordingTooLarge,
        Invalid,
        ModelNotConfigured,
        ProviderError,
    )
}


class SpeechRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A recording to transcribe, or a text to speak; without an agent for the tenant itself."""

    tenant_id: str
    agent_id: str | None
    kind: Literal["transcribe", "synthesize"]
    model: str
    text: str | None = None
    voice: str | None = None
    options: TranscriptionOptions | SpeechOptions | None = None
    format: AudioFormat = "mp3"


class TranscriptDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a recording besides its text. Some models report tokens."""

    seconds: float | None = None
    language: str | None = None
    used: UsedTokens | None = None
    segments: list[Any] | None = None
    words: list[Any] | None = None


class Transcript(msgspec.Struct, frozen=True):
    """The text is "" when nobody speaks."""

    text: str
    details: TranscriptDetails = TranscriptDetails()


class StoredError(msgspec.Struct):
    code: str
    message: str
    details: dict[str, Any] | None = None

    def build(self) -> ApiError:
        details = self.details or {}
        if "reason" in details:
            model, status = details["model"], details.get("provider_status")
            retry_after = details.get("retry_after")
            if status is not None:
                return refused_by_provider(model, status, self.message, retry_after)
            return ModelFailed(model, details["reason"], self.message, retry_after=retry_after)
        kind = _ERRORS.get(self.code)
        return kind(self.message, details=self.details) if kind else Unavailable(self.message)


class _Job(msgspec.Struct):
    """What is known of a job. A recording is stored as `input_key` before the row refers to it."""

    tenant_id: str
    agent_id: str | None
    id: str
    work_id: str | None = None
    input_key: str | None = None
    storing: asyncio.Task[StoredFile] | None = None
    output_key: str | None = None

    def build_deleted(self) -> ApiError:
        """Returns the error for a job whose row is gone."""
        return AgentNotFound(_AGENT_DELETED) if self.agent_id else Unavailable(_NO_OUTCOME)


def new_file_key() -> str:
    return FOLDER + new_id("aud")


async def transcribe(
    services: Services, request: SpeechRequest, blocks: AsyncIterable[bytes]
) -> Transcript:
    """The recording is not in memory while it waits for a worker."""
    ids = (request.tenant_id, request.agent_id, new_id("spj"))
    job = _Job(*ids, input_key=new_file_key())
    async with _remove_at_end(services, job):
        await _store_recording(services, job, blocks)
        row = await _run(services, request, job)
        details = msgspec.json.decode(row["details"] or "{}", type=TranscriptDetails)
        return Transcript(str(row["transcript"]), details)


async def synthesize(services: Services, request: SpeechRequest) -> bytes:
    """Returns the text as speech, a file of the format of the request."""
    job = _Job(request.tenant_id, request.agent_id, new_id("spj"))
    async with _remove_at_end(services, job):
        row = await _run(services, request, job)
        try:
            return await services.files.read(row["output_key"])
        except FileNotStored:
            raise job.build_deleted() from None


@asynccontextmanager
async def _remove_at_end(services: Services, job: _Job) -> AsyncIterator[None]:
    """However the block ends, also when the caller is cancelled, neither work nor row nor file
    remains.
    """
    with background.busy():
        try:
            yield
        finally:
            # In a task of its own: the answer does not wait for it, nor does a cancelled caller.
            background.spawn(_remove(services, job))


async def _store_recording(services: Services, job: _Job, blocks: AsyncIterable[bytes]) -> None:
    """In a task that is not cancelled: a store may go on after that, and the file would remain."""
    job.storing = asyncio.create_task(services.files.put_stream(job.input_key or "", blocks))
    await asyncio.shield(job.storing)


async def _run(services: Services, request: SpeechRequest, job: _Job) -> Row:
    """Returns the finished row."""
    await _accept(services, request, job)
    row = await _wait(services, job)
    if row["error"] is not None:
        raise msgspec.json.decode(row["error"], type=StoredError).build()
    return row


async def _accept(services: Services, request: SpeechRequest, job: _Job) -> None:
    async with services.db.tx(job.tenant_id) as tx:
        job.work_id = await work.accept(
            tx, RUN_SPEECH, tenant_id=job.tenant_id, ref_id=job.id, dedupe_key=job.id
        )
        values = (job.work_id, request.kind, request.model, job.input_key)
        options = None if request.options is None else as_json(request.options)
        texts = (request.text, request.voice, options, request.format)
        ids = (job.tenant_id, job.agent_id, job.id)
        if not await queries.insert_job(tx, *ids, *values, *texts):
            raise AgentNotFound(f"There is no agent {(job.agent_id or '')[:64]}")


async def _wait(services: Services, job: _Job) -> Row:
    """Returns the finished row. One that no worker has started is not waited for any longer."""
    await _wait_for_work(services, job, QUEUE_SECONDS)
    row = await _find(services, job)
    if row["status"] == "running":
        await _wait_for_work(services, job, RUN_SPEECH.timeout_seconds)
        row = await _find(services, job)
    job.output_key = row["output_key"]
    if row["finished_at"] is None:
        raise Unavailable(_NO_WORKER if row["status"] == "pending" else _NO_OUTCOME)
    return row


async def _wait_for_work(services: Services, job: _Job, seconds: float) -> None:
    ids = (job.tenant_id, job.work_id or "")
    await work.wait(services.db, services.doorbell, *ids, seconds)


async def _find(services: Services, job: _Job) -> Row:
    async with services.db.tx(job.tenant_id, autocommit=True) as tx:
        row = await queries.find_job(tx, job.tenant_id, job.id)
    if row is None:
        raise job.build_deleted()
    return row


async def _remove(services: Services, job: _Job) -> None:
    """Cancels unfinished work and deletes the row and the files."""
    if job.work_id is not None:
        async with services.db.tx(job.tenant_id) as tx:
            # The work's row is locked first, as a worker does that finishes it.
            await work.cancel(tx, services.doorbell, job.tenant_id, job.work_id)
            key = await queries.delete_job(tx, job.tenant_id, job.id)
            job.output_key = job.output_key or key
    if job.storing is not None:
        await asyncio.wait([job.storing])
    for key in filter(None, (job.input_key, job.output_key)):
        await services.files.delete(key)


async def cancel_all(tx: Tx, services: Services, tenant_id: str, agent_ids: list[str]) -> None:
    """Before agents are deleted: cancels their jobs, and deletes the files after the commit."""
    doorbell, files = services.doorbell, services.files
    ids = (tenant_id, agent_ids)
    for row in await queries.list_jobs_of_agents(tx, *ids):
        if await work.cancel(tx, doorbell, tenant_id, row["work_id"]):
            tx.after_commit.append(partial(doorbell.announce_done, row["work_id"]))
    # Read afterwards: a worker may have finished a job before its work could be cancelled.
    for row in await queries.list_jobs_of_agents(tx, *ids):
        for key in filter(None, (row["input_key"], row["output_key"])):
            tx.after_commit.append(partial(files.delete, key))
