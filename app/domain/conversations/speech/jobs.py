"""Job function: transcribe a recording, or speak a text."""

from app.domain.job import Job
from app.jobs import background
from app.kit.errors import Unavailable
from app.kit.texts import as_json
from app.services import Services
from db.ledger import WorkRow
from db.session import Tx

from . import engines, queries
from .speech_jobs import StoredError, new_file_key


async def run_speech(job: Job) -> None:
    async with job.checkpoint() as tx:
        row = await queries.start_job(tx, job.tenant_id, job.ref_id)
    if row is None:
        # The request has ended, or the agent is deleted.
        return
    outcome = await engines.run_job(job.services, job.tenant_id, row)
    # Each attempt has a file of its own: one that lost its lease deletes only its own.
    key = new_file_key() if outcome.speech is not None else None
    is_stored = False
    try:
        if key is not None and outcome.speech is not None:
            await job.services.files.put(key, outcome.speech)
        async with job.finish() as tx:
            await job.hold(tx)
            is_stored = await queries.finish_job(
                tx,
                job.tenant_id,
                job.ref_id,
                transcript=outcome.transcript,
                details=outcome.details,
                output_key=key,
                error=outcome.error,
            )
    finally:
        if key is not None and not (is_stored and job.outcome == "done"):
            background.spawn(job.services.files.delete(key))


async def on_dead_speech(_services: Services, tx: Tx, row: WorkRow, error: str) -> None:
    failure = StoredError(Unavailable.code, f"It could not be processed: {error}")
    ids = (row.tenant_id or "", row.ref_id or "")
    await queries.finish_job(tx, *ids, error=as_json(failure))
