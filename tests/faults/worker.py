"""A worker process with one more kind of work, slow enough to be killed while it runs."""

import asyncio
import os
import random

from app import settings as configuration
from app.areas import AREAS
from app.domain.job import Job
from app.jobs.work import WorkKind
from app.kit.ids import new_id
from workers.main import main

EFFECT = WorkKind("test.effect", timeout_seconds=20, retry_delays=(0.2,) * 20)


async def write_effect(job: Job) -> None:
    await asyncio.sleep(random.uniform(0.02, 0.25))
    async with job.finish() as tx:
        await (await tx.raw()).execute(
            "INSERT INTO event_log (tenant_id, id, type, correlation_id, data) "
            "VALUES ($1, $2, 'test.effect', 'cor_faults', jsonb_build_object('work', $3::text))",
            job.row.tenant_id,
            new_id("evt"),
            job.row.id,
        )


if __name__ == "__main__":
    AREAS.work_kinds[EFFECT.name] = EFFECT
    functions = {EFFECT.name: write_effect}
    main(configuration.load(os.environ), [EFFECT.queue], functions=functions)
