"""Job functions: process submissions of forms, mail digests of them, and erase what they caused."""

from app.domain.automation.workflows.errors import TooManyPendingExecutions
from app.domain.job import Job, Retry
from app.kit.errors import Unavailable
from app.services import Services
from db.ledger import WorkRow
from db.session import Tx

from . import erasure, processing, submission_mails


async def process_submission(job: Job) -> None:
    cause = job.row.cause_event_id
    prepared = await processing.prepare(job.services, job.tenant_id, job.ref_id, cause)
    if prepared is None:
        return
    try:
        async with job.finish() as tx:
            # The work is locked before the submission.
            await job.hold(tx)
            await processing.process(
                tx,
                job.services,
                prepared,
                job.ref_id,
                cause,
                is_last_attempt=job.row.attempt >= job.row.max_attempts,
            )
    except (TooManyPendingExecutions, Unavailable) as error:
        raise Retry(error.message) from None


async def send_form_digest(job: Job) -> None:
    async with job.finish_first() as tx:
        await submission_mails.send_digest(tx, job.services, job.tenant_id, job.ref_id)


async def erase_submission(job: Job) -> None:
    async with job.finish() as tx:
        await job.hold(tx)
        if await erasure.erase_settled(tx, job.tenant_id, [job.ref_id]):
            raise Retry("an execution that the submission started still runs")


async def on_dead_submission(_services: Services, tx: Tx, row: WorkRow, error: str) -> None:
    await processing.give_up(tx, row.tenant_id or "", row.ref_id or "", error)


async def on_retry_submission(_services: Services, tx: Tx, row: WorkRow) -> bool:
    return await processing.wait_again(tx, row.tenant_id or "", row.ref_id or "")
