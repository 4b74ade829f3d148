"""Job function: end an approval whose time is up, also when every attempt to do so failed."""

from app.domain.job import Job
from app.services import Services
from db.ledger import WorkRow
from db.session import Tx

from . import service


async def expire_approval(job: Job) -> None:
    async with job.finish() as tx:
        # The work is locked before the approval.
        await job.hold(tx)
        await service.expire(tx, job.services, job.tenant_id, job.ref_id)


async def on_dead_expiry(services: Services, tx: Tx, row: WorkRow, _error: str) -> None:
    """Nobody can answer now, and nothing else ends the approval."""
    await service.expire(tx, services, row.tenant_id or "", row.ref_id or "")
