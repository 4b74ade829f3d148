"""Job function: end an approval whose time is up."""

from app.domain.approvals import service
from workers.runner import Job


async def expire_approval(job: Job) -> None:
    async with job.finish() as tx:
        # The work is locked before the approval.
        await job.hold(tx)
        await service.expire(tx, job.services, job.tenant_id, job.ref_id)
