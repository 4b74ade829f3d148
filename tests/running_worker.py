"""A worker within the test process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from app import container
from app.jobs import background
from app.kit.redis import connect
from app.settings import Settings
from app.templating.expressions import Expressions
from tests.stores import Stores
from workers.main import CONCURRENCY, WorkerProcess

_CANCEL = "UPDATE work SET state = 'cancelled', finished_at = now() WHERE state = 'pending'"


async def cancel_earlier_work(stores: Stores) -> None:
    """Cancels what earlier tests left in the ledger and on the queues, which a new worker would
    run first: together they leave thousands of rows.
    """
    connection = await asyncpg.connect(stores.settings.database_url)
    try:
        await connection.execute(_CANCEL)
    finally:
        await connection.close()
    async with connect(stores.settings.redis_address) as redis:
        keys = [key async for key in redis.scan_iter("saq:*", count=1000)]
        if keys:
            await redis.delete(*keys)


@asynccontextmanager
async def run_worker(
    settings: Settings,
    *queues: str,
    slots: int | None = None,
    expressions: Expressions | None = None,
) -> AsyncIterator[WorkerProcess]:
    """Runs a worker for these queues, with services of its own.

    With `slots`, each queue has as many: a worker starts faster with few, since each of them opens
    a connection to Redis. With `expressions` of other services, it starts no processes for its own.
    """
    services = container.build(settings)
    own_expressions = services.get(Expressions)
    services.add(expressions or own_expressions)
    with pytest.MonkeyPatch.context() as patch:
        if slots is not None:
            for queue in queues:
                patch.setitem(CONCURRENCY, queue, slots)
        process = WorkerProcess(services, list(queues))
    task = background.start(process.run())
    try:
        yield process
    finally:
        process.stopped.set()
        await task
        services.add(own_expressions)
        await services.close()
