"""Job function of stored files."""

from app.domain.job import Job

from . import maintenance


async def sweep_files(job: Job) -> None:
    await maintenance.sweep(job.services)
