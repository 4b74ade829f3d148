"""Job function of stored files."""

from app.domain.files import maintenance
from workers.job import Job


async def sweep_files(job: Job) -> None:
    await maintenance.sweep(job.services)
