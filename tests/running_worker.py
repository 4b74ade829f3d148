"""A worker within the test process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app import container
from app.settings import Settings
from workers.main import WorkerProcess


@asynccontextmanager
async def run_worker(settings: Settings, *queues: str) -> AsyncIterator[WorkerProcess]:
    """Runs a worker for these queues, with services of its own."""
    services = container.build(settings)
    process = WorkerProcess(services, list(queues))
    task = asyncio.create_task(process.run())
    try:
        yield process
    finally:
        process.stopped.set()
        await task
        await services.close()
