"""Job functions of sources: sync one, and apply the changes of one."""

from app.domain.agents.definition.errors import AgentNotFound
from app.domain.job import Job, Postpone
from app.services import Services
from db.fast import Row
from db.ledger import WorkRow
from db.session import Tx

from . import finishing, queries, reviews, settings
from .failures import OutOfTime, SyncFailed
from .kinds import protocol
from .settings import Source
from .syncing import Turn
from .web import WebClient

_MEGABYTE = 1024 * 1024


async def sync_source(job: Job) -> None:
    async with job.checkpoint() as tx:
        row = await queries.start(tx, job.tenant_id, job.ref_id, job.row.id)
    if row is None:
        # Deleted, or other work has taken over.
        return
    try:
        source = settings.load(job.services.keyring, row)
        left_out = await _run_turn(job, source)
    except OutOfTime:
        raise Postpone from None
    except AgentNotFound:
        return
    except SyncFailed as failure:
        await _fail(job, row, failure)
    else:
        await finishing.complete(job, source, left_out)


async def _run_turn(job: Job, source: Source) -> int:
    max_bytes = job.services.settings.max_body_mb * _MEGABYTE
    follows_robots = source.kind.follows_robots
    web = WebClient(job.services.egress, max_bytes=max_bytes, follows_robots=follows_robots)
    turn = protocol.Turn(web, source.config, source.secrets, max_bytes)
    return await Turn(job, source, source.kind(turn)).run()


async def _fail(job: Job, row: Row, failure: SyncFailed) -> None:
    async with job.finish() as tx:
        await job.hold(tx)
        await finishing.fail(tx, row, failure)


async def apply_changes(job: Job) -> None:
    async with job.checkpoint() as tx:
        row = await queries.find_settings(tx, job.tenant_id, job.ref_id)
    if row is None or row["work_id"] != job.row.id:
        return
    try:
        await reviews.apply_waiting(job, settings.load(job.services.keyring, row))
    except OutOfTime:
        raise Postpone from None
    except AgentNotFound:
        return
    except SyncFailed as failure:
        async with job.finish() as tx:
            await job.hold(tx)
            await queries.set_status(tx, job.tenant_id, job.ref_id, str(failure))


async def on_dead_apply(_services: Services, tx: Tx, work: WorkRow, error: str) -> None:
    problem = f"The changes could not be applied: {error}"
    await queries.set_status(tx, work.tenant_id or "", work.ref_id or "", problem)


async def on_dead_sync(_services: Services, tx: Tx, work: WorkRow, error: str) -> None:
    row = await queries.find_settings(tx, work.tenant_id or "", work.ref_id or "")
    if row is not None and row["work_id"] == work.id:
        await finishing.fail(tx, row, SyncFailed(f"The source could not be read: {error}"))


async def on_retry(_services: Services, tx: Tx, work: WorkRow) -> bool:
    """The source shows its error until it was read."""
    row = await queries.find_settings(tx, work.tenant_id or "", work.ref_id or "")
    return row is not None and row["work_id"] == work.id
