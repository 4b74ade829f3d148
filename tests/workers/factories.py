"""Work, runners and rows of the ledger for tests."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from app.domain.job import Job, JobFunction
from app.domain.platform.events.service import emit_dead
from app.jobs import work
from app.jobs.work import WorkKind
from app.services import Services
from db.session import ALL_TENANTS
from workers.runner import Runner

QUICK = WorkKind("test.quick", timeout_seconds=5, retry_delays=(0, 0), awaited=True)
SHARED = WorkKind("test.shared", "speech", retry_delays=(0,), per_tenant=2)
BRIEF = WorkKind("test.brief", timeout_seconds=0.1, retry_delays=())


async def accept(services: Services, tenant: str, kind: WorkKind = QUICK, **more: Any) -> str:
    async with services.db.tx(tenant) as tx:
        return await work.accept(tx, kind, tenant_id=tenant, **more)


async def read_row(services: Services, work_id: str) -> dict[str, Any]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        row = await (await tx.raw()).fetchrow("SELECT * FROM work WHERE id = $1", work_id)
    return dict(row)


async def execute(services: Services, sql: str, *args: object) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(sql, *args)


def create_runner(services: Services, function: JobFunction) -> Runner:
    functions = {kind.name: function for kind in (QUICK, BRIEF, SHARED)}
    return Runner(services, functions, on_any_dead=emit_dead)


class WaitingJob:
    """A job of QUICK that has started and waits until it is cancelled."""

    def __init__(self, services: Services) -> None:
        self.runner = create_runner(services, self._wait)
        self._services = services
        self._started = asyncio.Event()

    async def _wait(self, _job: Job) -> None:
        self._started.set()
        await asyncio.Event().wait()

    async def start(self, tenant: str) -> tuple[str, asyncio.Task[None]]:
        """Returns the id of its work, and the task of the runner."""
        work_id = await accept(self._services, tenant)
        run = asyncio.create_task(self.runner.run(work_id))
        await self._started.wait()
        return work_id, run


async def wait_until(condition: Callable[[], Awaitable[bool]], seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110  # the condition is in the database
            await asyncio.sleep(0.01)
